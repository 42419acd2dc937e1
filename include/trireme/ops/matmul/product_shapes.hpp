#pragma once

#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/core/shape.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// The shapes that a and b have in matmul(). A vector becomes a row on the left and a column on the right.
struct ProductShapes {
  Shape a;
  Shape b;
  Shape batch;   // leading dims of the product
  Shape result;  // without the dims that were added to vectors
};
ProductShapes product_shapes(const Shape& a, const Shape& b);

// Throws Error: "dot: the operands have the shapes [2] and [2, 3], but must be vectors".
void require_vectors(std::string_view op, const Shape& a, const Shape& b);

}  // namespace ops
}  // namespace trireme
