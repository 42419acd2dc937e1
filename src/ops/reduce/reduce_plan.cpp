#include "ops/reduce/reduce_plan.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "ops/base/check.hpp"
#include "trireme/ops/reduce/reductions.hpp"

namespace trireme::ops {
namespace {

using Marks = std::array<bool, Shape::max_dims>;

Marks reduced_dims(std::string_view op, const Shape& shape, const Dims& dims) {
  Marks reduced{};
  if (dims.empty()) reduced.fill(true);
  for (const int dim : dims.numbers()) {
    if (shape.size() == 0 && (dim == 0 || dim == -1)) continue;
    const int place = dim < 0 ? dim + shape.size() : dim;
    require(place >= 0 && place < shape.size(), "{}: a tensor of shape {} has no dim {}", op, shape, dim);
    bool& mark = reduced[static_cast<std::size_t>(place)];
    require(!mark, "{}: dim {} of the shape {} is named twice", op, dim, shape);
    mark = true;
  }
  return reduced;
}

}  // namespace

std::string_view operation_name(Reduction kind) {
  switch (kind) {
    case Reduction::sum: return "sum";
    case Reduction::mean: return "mean";
    case Reduction::prod: return "prod";
    case Reduction::max: return "max";
    case Reduction::min: return "min";
    case Reduction::var: return "var";
    case Reduction::stddev: return "stddev";
    case Reduction::norm1:
    case Reduction::norm2:
    case Reduction::norm_inf: return "norm";
  }
  return {};
}

Reduction norm_of(double p) {
  require(p == 1 || p == 2 || p == std::numeric_limits<double>::infinity(), "norm: p is 1, 2 or infinity, not {}", p);
  return p == 1 ? Reduction::norm1 : p == 2 ? Reduction::norm2 : Reduction::norm_inf;
}

ReducePlan reduce_plan(std::string_view op, const Shape& shape, const Dims& dims) {
  const Marks reduced = reduced_dims(op, shape, dims);
  const auto is_reduced = [&](int dim) { return reduced[static_cast<std::size_t>(dim)]; };
  int first = shape.size();  // first and last of the reduced dims with an extent above 1
  int last = -1;
  for (int dim = 0; dim < shape.size(); ++dim) {
    if (!is_reduced(dim) || shape[dim] == 1) continue;
    first = std::min(first, dim);
    last = dim;
  }
  ReducePlan plan;
  bool are_neighbours = true;
  for (int dim = 0; dim < shape.size(); ++dim) {
    std::int64_t& size = is_reduced(dim) ? plan.sizes.reduced : dim < first ? plan.sizes.outer : plan.sizes.inner;
    size *= shape[dim];
    if (dim > first && dim < last && !is_reduced(dim) && shape[dim] != 1) are_neighbours = false;
  }
  if (are_neighbours) return plan;
  for (const bool wanted : {false, true}) {
    for (int dim = 0; dim < shape.size(); ++dim) {
      if (is_reduced(dim) == wanted) plan.order.push_back(dim);
    }
  }
  plan.sizes.outer *= std::exchange(plan.sizes.inner, 1);
  return plan;
}

Shape reduced_shape(std::string_view op, const Shape& shape, const Dims& dims, bool keep_dims) {
  const Marks reduced = reduced_dims(op, shape, dims);
  std::vector<std::int64_t> kept;
  for (int dim = 0; dim < shape.size(); ++dim) {
    if (!reduced[static_cast<std::size_t>(dim)]) {
      kept.push_back(shape[dim]);
    } else if (keep_dims) {
      kept.push_back(1);
    }
  }
  return Shape(kept);
}

}  // namespace trireme::ops
