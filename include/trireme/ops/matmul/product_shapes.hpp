#pragma once

#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/core/shape.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// The shapes by which a and b are multiplied where one of them, or both, may be vectors: a row on the left, a column on the
// right.
struct ProductShapes {
  Shape a;
  Shape b;
  Shape batch;   // of the product of these
  Shape result;  // without the dims that vectors lack
};
ProductShapes product_shapes(const Shape& a, const Shape& b);

// "dot: the operands have the shapes [2] and [2, 3], but must be vectors"
void require_vectors(std::string_view op, const Shape& a, const Shape& b);

}  // namespace ops
}  // namespace trireme
