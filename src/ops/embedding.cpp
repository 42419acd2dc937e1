#include "trireme/ops/embedding.hpp"

#include "ops/check.hpp"
#include "ops/kernels/elementwise.hpp"
#include "ops/parallel.hpp"

namespace trireme::ops {
namespace {

template <typename T>
void require_rows(std::string_view op, const Tensor<std::int32_t, Cpu>& index, const Tensor<T, Cpu>& weight,
                  const Tensor<T, Cpu>& rows) {
  require(weight.shape().size() == 2, "{}: the weight has shape {}, but needs [rows, width]", op, weight.shape());
  require(rows.shape().size() > 0 && rows.shape().back() == weight.dim(1) && rows.numel() == index.numel() * weight.dim(1),
          "{}: an index of shape {} and a weight of shape {} do not fit rows of shape {}", op, index.shape(), weight.shape(),
          rows.shape());
  for (std::int64_t place = 0; place < index.numel(); ++place) {
    const std::int32_t row = index.data()[place];
    require(row >= 0 && row < weight.dim(0), "{}: index {} is {}, but must lie in [0, {})", op, place, row, weight.dim(0));
  }
}

}  // namespace

template <typename T, typename D>
void embedding(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& weight, Tensor<T, D>& y, bool accumulate) {
  require_rows("embedding", index, weight, y);
  const std::int64_t width = weight.dim(1);
  const auto& kernels = elementwise_kernels().of<T>();
  parallel_rows(index.numel(), width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t place = begin; place < end; ++place) {
      const T* row = weight.data() + index.data()[place] * width;
      T* to = y.data() + place * width;
      if (accumulate) {
        kernels.add(to, row, to, width);
      } else {
        std::copy_n(row, width, to);
      }
    }
  });
}

template <typename T, typename D>
void embedding_backward(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& dy, Tensor<T, D>& dweight, bool accumulate,
                        std::int32_t padding) {
  require_rows("embedding_backward", index, dweight, dy);
  const std::int64_t width = dweight.dim(1);
  const auto& kernels = elementwise_kernels().of<T>();
  // Each thread owns rows of the table and goes through all indices.
  parallel_rows(dweight.dim(0), width, [&](std::int64_t begin, std::int64_t end) {
    if (!accumulate) std::fill(dweight.data() + begin * width, dweight.data() + end * width, T(0));
    for (std::int64_t place = 0; place < index.numel(); ++place) {
      const std::int32_t row = index.data()[place];
      if (row < begin || row >= end || row == padding) continue;
      T* to = dweight.data() + row * width;
      kernels.add(to, dy.data() + place * width, to, width);
    }
  });
}

#define TRIREME_INSTANTIATE(T)                                                                                     \
  template void embedding(const Tensor<std::int32_t, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool);         \
  template void embedding_backward(const Tensor<std::int32_t, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool, \
                                   std::int32_t);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
