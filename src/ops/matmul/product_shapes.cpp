#include "trireme/ops/matmul/product_shapes.hpp"

#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/ops/matmul/batched_matmul.hpp"

namespace trireme::ops {

ProductShapes product_shapes(const Shape& a, const Shape& b) {
  require(a.size() > 0 && b.size() > 0, "matmul: {} and {} do not fit: a scalar is no matrix", a, b);
  require(a.back() == (b.size() == 1 ? b[0] : b[-2]), "matmul: {} and {} do not fit", a, b);
  ProductShapes shapes{
      .a = a.size() == 1 ? Shape{1, a[0]} : a, .b = b.size() == 1 ? Shape{b[0], 1} : b, .batch = {}, .result = {}};
  shapes.batch = batched_matmul_shape(shapes.a, shapes.b);
  std::vector<std::int64_t> dims(shapes.batch.dims().begin(), shapes.batch.dims().end());
  if (b.size() == 1) dims.pop_back();
  if (a.size() == 1) dims.erase(dims.end() - (b.size() == 1 ? 1 : 2));
  shapes.result = Shape(dims);
  return shapes;
}

void require_vectors(std::string_view op, const Shape& a, const Shape& b) {
  require(a.size() == 1 && b.size() == 1, "{}: the operands have the shapes {} and {}, but must be vectors", op, a, b);
}

}  // namespace trireme::ops
