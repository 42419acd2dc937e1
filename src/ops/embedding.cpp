#include "trireme/ops/embedding.hpp"

#include "ops/kernels/tables.hpp"
#include "ops/parallel_for.hpp"

namespace trireme::ops {
namespace {

void require_rows(const Tensor<std::int32_t>& index, std::int64_t rows) {
  for (std::int64_t place = 0; place < index.numel(); ++place) {
    const std::int32_t row = index.data()[place];
    require(row >= 0 && row < rows, "embedding: index {} at element {} is not one of {} rows", row, place, rows);
  }
}

}  // namespace

template <typename T, typename D>
void embedding(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& weight, Tensor<T, D>& y, bool accumulate) {
  const std::int64_t width = weight.shape().back();
  require(y.numel() == index.numel() * width, "embedding: y {} for {} indices of width {}", y.shape().str(), index.numel(),
          width);
  require_rows(index, weight.shape().rows());
  parallel_for(index.numel(), std::max<std::int64_t>(1, elements_per_part / width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t place = begin; place < end; ++place) {
      const T* row = weight.data() + index.data()[place] * width;
      kernels::elementwise<T>().scale(row, T{1}, y.data() + place * width, width, accumulate);
    }
  });
}

template <typename T, typename D>
void embedding_backward(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& dy, Tensor<T, D>& dweight, bool accumulate) {
  const std::int64_t width = dweight.shape().back();
  require(dy.numel() == index.numel() * width, "embedding_backward: dy {} for {} indices of width {}", dy.shape().str(),
          index.numel(), width);
  require_rows(index, dweight.shape().rows());
  if (!accumulate) std::fill_n(dweight.data(), dweight.numel(), T{});
  const std::int64_t grain = std::max<std::int64_t>(16, elements_per_part / std::max<std::int64_t>(index.numel(), 1));
  parallel_for(width, grain, [&](std::int64_t begin, std::int64_t end) {  // columns: rows may repeat
    for (std::int64_t place = 0; place < index.numel(); ++place) {
      T* row = dweight.data() + index.data()[place] * width;
      kernels::elementwise<T>().scale(dy.data() + place * width + begin, T{1}, row + begin, end - begin, true);
    }
  });
}

#define TRIREME_INSTANTIATE(T)                                                                             \
  template void embedding(const Tensor<std::int32_t, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool); \
  template void embedding_backward(const Tensor<std::int32_t, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);

}  // namespace trireme::ops
