#pragma once

#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/ops/array/copy_strided.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// How tensors are joined into a tensor of shape `to`. Folded to two dims, tensor i is [outer, widths[i]], and the result is
// [outer, width], where width is the sum of all widths.
struct Joining {
  std::string_view name;
  Shape to;
  std::int64_t outer = 1;
  std::vector<std::int64_t> widths = {};
  int dim = 0;  // the tensors are joined along this dim

  StridedCopy part(std::size_t i) const;  // from tensor i to y
};

// joined() takes tensors whose extents may differ only along `dim`. stacked() takes tensors of one shape, and makes a new dim
// before `dim`.
Joining joined(const std::vector<Shape>& shapes, int dim);
Joining stacked(const std::vector<Shape>& shapes, int dim);

template <typename T, typename D>
void join(const Joining& joining, const std::vector<Tensor<T, D>>& xs, Tensor<T, D>& y) {
  for (std::size_t i = 0; i < xs.size(); ++i) copy_strided(joining.part(i), xs[i], y);
}

}  // namespace ops
}  // namespace trireme
