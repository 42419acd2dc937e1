#include "ops/cuda/attention.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/attention_on.hpp"
#include "ops/attention_tile_arguments.hpp"

namespace trireme::ops {
namespace {

template <typename Kernel>
void run_tiles(const Kernel& kernel, std::string_view operation) {
  require(kernel.rows > 0, "{}: a head of {} elements is too large for the memory of a GPU's multiprocessor", operation,
          kernel.size());
  device::check_cuda(cuda::run_tiles(kernel, device::native_stream()), operation);
}

}  // namespace

template <>
template <typename T>
void Attention<Cuda>::forward(const AttentionForward<T, Cuda>& pass, const AttentionSizes& sizes) {
  run_tiles(attention_forward_tile(pass, sizes), "attention");
}

template <>
template <typename T>
void Attention<Cuda>::backward(const AttentionBackward<T, Cuda>& pass, const AttentionSizes& sizes) {
  const Tensor<Accumulate<T>, Cuda> delta(pass.log_sum_exp.shape());
  const auto tiles = attention_backward_tiles(pass, sizes, delta);
  run_tiles(tiles.queries, "attention_backward");
  run_tiles(tiles.keys, "attention_backward");
}

TRIREME_INSTANTIATE_ATTENTION(float, Cuda);
TRIREME_INSTANTIATE_ATTENTION(double, Cuda);
TRIREME_INSTANTIATE_ATTENTION(bfloat16, Cuda);
TRIREME_INSTANTIATE_ATTENTION(float16, Cuda);

}  // namespace trireme::ops
