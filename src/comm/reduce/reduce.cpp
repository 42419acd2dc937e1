#include "comm/reduce/reduce.hpp"

#include <array>

#include "comm/reduce/reduce_kernels.hpp"
#include "trireme/core/error.hpp"

namespace trireme::comm {
namespace {

const ReduceKernelsOfType* kernels_for(DType dtype) {
  const ReduceKernels& kernels = reduce_kernels();
  switch (dtype) {
    case DType::float32: return &kernels.float32;
    case DType::float64: return &kernels.float64;
    case DType::int32: return &kernels.int32;
    case DType::int64: return &kernels.int64;
    case DType::uint64: return &kernels.uint64;
    case DType::bfloat16: return &kernels.bfloat16;
    case DType::float16: return &kernels.float16;
    default: return nullptr;
  }
}

ReduceKernel choose(const ReduceKernelsOfType& kernels, ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::fixed_sum: return kernels.sum;
    case ReduceOp::min: return kernels.min;
    case ReduceOp::max: return kernels.max;
    case ReduceOp::mean: return kernels.mean;
  }
  return kernels.sum;
}

}  // namespace

void reduce(ReduceOp op, DType dtype, std::span<const std::byte* const> from, std::span<std::byte* const> to,
            std::size_t count) {
  const ReduceKernelsOfType* kernels = kernels_for(dtype);
  require(kernels != nullptr, "no arithmetic for {} in collectives", name_of(dtype));
  choose(*kernels, op)(reinterpret_cast<const void* const*>(from.data()), from.size(),
                       reinterpret_cast<void* const*>(to.data()), to.size(), count);
}

void divide(DType dtype, std::byte* data, std::size_t count, int divisor) {
  const ReduceKernelsOfType* kernels = kernels_for(dtype);
  require(kernels != nullptr, "no arithmetic for {} in collectives", name_of(dtype));
  kernels->divide(data, count, divisor);
}

}  // namespace trireme::comm
