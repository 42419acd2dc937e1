#include "ops/reduce/reduce_plan.hpp"

#include <array>
#include <limits>

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

// Neighbouring dims that are all reduced, or none of them.
struct Run {
  std::int64_t extent;
  bool reduced;
};

void add(std::vector<Run>& runs, const Run& run) {
  if (!runs.empty() && runs.back().reduced == run.reduced) {
    runs.back().extent *= run.extent;
  } else {
    runs.push_back(run);
  }
}

Shape shape_of(const std::vector<Run>& runs) {
  std::vector<std::int64_t> dims;
  for (const Run& run : runs) dims.push_back(run.extent);
  return Shape(dims);
}

}  // namespace

std::string_view operation_name(Reduction kind) {
  switch (kind) {
    case Reduction::sum: return "sum";
    case Reduction::mean: return "mean";
    case Reduction::prod: return "prod";
    case Reduction::max: return "max";
    case Reduction::min: return "min";
    case Reduction::logsumexp: return "logsumexp";
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
  std::vector<Run> runs;
  for (int dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] != 1) add(runs, {shape[dim], reduced[static_cast<std::size_t>(dim)]});
  }
  ReducePlan plan;
  while (runs.size() > 2) {
    const std::size_t first = runs[0].reduced ? 0 : 1;  // the first reduced run, and behind it one that is kept
    if (first + 2 >= runs.size()) break;
    plan.exchanges.push_back({shape_of(runs), static_cast<int>(first)});
    std::swap(runs[first], runs[first + 1]);
    std::vector<Run> merged;
    for (const Run& run : runs) add(merged, run);
    runs = std::move(merged);
  }
  std::size_t next = 0;
  if (next < runs.size() && !runs[next].reduced) plan.sizes.outer = runs[next++].extent;
  if (next < runs.size()) plan.sizes.reduced = runs[next++].extent;
  if (next < runs.size()) plan.sizes.inner = runs[next].extent;
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
