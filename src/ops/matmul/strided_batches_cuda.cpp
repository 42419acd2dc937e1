#include "ops/matmul/strided_batches_cuda.hpp"

#include <algorithm>
#include <utility>

namespace trireme::ops::cuda {
namespace {

constexpr std::int64_t most_products = 65535;  // of one batch: the third dim of a grid

struct Loop {
  std::int64_t count;
  OperandPlaces stride;  // 0 if the operand has one matrix for all
};

std::int64_t stride_along(int dim, const Shape& operand, std::int64_t& matrices) {
  if (-dim > operand.size()) return 0;
  const std::int64_t stride = operand[dim] == 1 ? 0 : matrices;
  matrices *= operand[dim];
  return stride;
}

// Whether a step of `outer` is as long as all of `inner`, in every operand.
bool continues(const Loop& outer, const Loop& inner) {
  const auto joins = [&](std::int64_t OperandPlaces::*of) { return outer.stride.*of == inner.stride.*of * inner.count; };
  return joins(&OperandPlaces::a) && joins(&OperandPlaces::b) && joins(&OperandPlaces::c);
}

// The loops over the dims of `batch`, innermost first; dims are merged where possible.
std::vector<Loop> loops_over(const Shape& a, const Shape& b, const Shape& c, const Shape& batch) {
  std::vector<Loop> loops;
  OperandPlaces matrices{1, 1, 1};
  for (int dim = -3; - dim <= batch.size(); --dim) {
    const Loop loop{batch[dim],
                    {stride_along(dim, a, matrices.a), stride_along(dim, b, matrices.b), stride_along(dim, c, matrices.c)}};
    if (loop.count == 1) continue;
    if (!loops.empty() && continues(loop, loops.back())) {
      loops.back().count *= loop.count;
    } else {
      loops.push_back(loop);
    }
  }
  return loops;
}

// Removes the longest loop that writes to different matrices of c, and returns it as the loop within a batch.
Loop take_strided(std::vector<Loop>& loops) {
  const auto length = [](const Loop& loop) { return loop.stride.c == 0 ? 0 : loop.count; };
  const auto longest = std::ranges::max_element(loops, {}, length);
  if (longest == loops.end() || longest->stride.c == 0) return {1, {}};
  const Loop strided = *longest;
  loops.erase(longest);
  return strided;
}

OperandPlaces operator*(std::int64_t steps, const OperandPlaces& stride) {
  return {steps * stride.a, steps * stride.b, steps * stride.c};
}
OperandPlaces operator+(const OperandPlaces& x, const OperandPlaces& y) { return {x.a + y.a, x.b + y.b, x.c + y.c}; }

}  // namespace

std::vector<StridedBatch> strided_batches(const Shape& a, const Shape& b, const Shape& c, const Shape& batch) {
  std::vector<Loop> loops = loops_over(a, b, c, batch);
  const Loop strided = take_strided(loops);
  std::vector<StridedBatch> batches;
  for (std::int64_t begin = 0; begin < strided.count; begin += most_products) {
    batches.push_back({std::min(most_products, strided.count - begin), begin * strided.stride, strided.stride, false});
  }
  for (const Loop& loop : loops) {
    std::vector<StridedBatch> repeated;
    for (std::int64_t i = 0; i < loop.count; ++i) {
      for (StridedBatch one : batches) {
        one.first = one.first + i * loop.stride;
        one.accumulate = one.accumulate || (loop.stride.c == 0 && i > 0);
        repeated.push_back(one);
      }
    }
    batches = std::move(repeated);
  }
  return batches;
}

}  // namespace trireme::ops::cuda
