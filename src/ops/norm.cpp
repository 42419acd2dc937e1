#include "trireme/ops/norm.hpp"

#include <vector>

#include "ops/kernels/tables.hpp"
#include "ops/parallel_for.hpp"

namespace trireme::ops {
namespace {

template <typename T>
T* pointer(const Tensor<T>& tensor) {
  return tensor.defined() ? tensor.data() : nullptr;
}

std::int64_t rows_per_part(std::int64_t width) {
  return std::max<std::int64_t>(1, elements_per_part / std::max<std::int64_t>(width, 1));
}

template <typename T>
void require_width(const Tensor<T>& tensor, std::int64_t width, const char* name) {
  require(!tensor.defined() || tensor.numel() == width, "layer_norm: {} has {} elements, the last dim of x is {}", name,
          tensor.defined() ? tensor.numel() : 0, width);
}

}  // namespace

template <typename T, typename D>
void layer_norm(const LayerNormForward<T, D>& pass) {
  const std::int64_t width = pass.x.shape().back();
  require_width(pass.weight, width, "weight");
  require_width(pass.bias, width, "bias");
  require(!pass.residual.defined() || (pass.residual.numel() == pass.x.numel() && pass.x_sum.defined()),
          "layer_norm: a residual of shape {} for an x of shape {}, and x_sum must be given", pass.residual.shape().str(),
          pass.x.shape().str());
  const typename kernels::Norm<T>::Forward forward{
      pass.x.data(),       pointer(pass.residual), pointer(pass.weight), pointer(pass.bias), static_cast<T>(pass.epsilon),
      pointer(pass.x_sum), pass.y.data(),          pass.mean.data(),     pass.rstd.data(),   width};
  parallel_for(pass.x.shape().rows(), rows_per_part(width),
               [&](std::int64_t begin, std::int64_t end) { kernels::norm<T>().forward(forward, begin, end); });
}

template <typename T, typename D>
void layer_norm_backward(const LayerNormBackward<T, D>& pass) {
  const std::int64_t width = pass.x.shape().back();
  const std::int64_t rows = pass.x.shape().rows();
  require_width(pass.weight, width, "weight");
  require_width(pass.dweight, width, "dweight");
  require_width(pass.dbias, width, "dbias");
  typename kernels::Norm<T>::Backward backward{
      pass.x.data(),  pointer(pass.weight), pass.mean.data(),      pass.rstd.data(),    pass.dy.data(),
      pass.dx.data(), pass.accumulate_dx,   pointer(pass.dweight), pointer(pass.dbias), width};
  if (pass.dweight.defined() && !pass.accumulate_dweight) std::fill_n(pass.dweight.data(), width, T{});
  if (pass.dbias.defined() && !pass.accumulate_dbias) std::fill_n(pass.dbias.data(), width, T{});

  const bool sums = pass.dweight.defined() || pass.dbias.defined();
  const std::int64_t grain = rows_per_part(width);
  const std::int64_t threads = std::min<std::int64_t>(omp_get_max_threads(), (rows + grain - 1) / grain);
  if (!sums || threads <= 1) {
    parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) { kernels::norm<T>().backward(backward, begin, end); });
    return;
  }
  // Each thread sums its rows' gradients of weight and bias apart; they are added in thread order.
  std::vector<T> partial(static_cast<std::size_t>(2 * threads * width));
  const std::int64_t rows_per_thread = (rows + threads - 1) / threads;
  parallel_for(rows, rows_per_thread, [&](std::int64_t begin, std::int64_t end) {
    auto mine = backward;
    T* sum = partial.data() + 2 * (begin / rows_per_thread) * width;
    if (mine.dweight != nullptr) mine.dweight = sum;
    if (mine.dbias != nullptr) mine.dbias = sum + width;
    kernels::norm<T>().backward(mine, begin, end);
  });
  for (std::int64_t thread = 0; thread < threads; ++thread) {
    const T* sum = partial.data() + 2 * thread * width;
    for (std::int64_t i = 0; pass.dweight.defined() && i < width; ++i) pass.dweight.data()[i] += sum[i];
    for (std::int64_t i = 0; pass.dbias.defined() && i < width; ++i) pass.dbias.data()[i] += sum[width + i];
  }
}

#define TRIREME_INSTANTIATE(T)                               \
  template void layer_norm(const LayerNormForward<T, Cpu>&); \
  template void layer_norm_backward(const LayerNormBackward<T, Cpu>&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);

}  // namespace trireme::ops
