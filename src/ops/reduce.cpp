#include "trireme/ops/reduce.hpp"

#include "ops/block_sums.hpp"
#include "ops/kernels/tables.hpp"
#include "ops/parallel_for.hpp"

namespace trireme::ops {

template <typename T, typename D>
void sum_rows(const Tensor<T, D>& x, Tensor<T, D>& columns, bool accumulate) {
  const std::int64_t width = columns.numel();
  require(x.shape().size() >= 1 && x.shape().back() == width, "sum_rows: {} columns for an x of shape {}", width,
          x.shape().str());
  const std::int64_t rows = x.shape().rows();
  const std::int64_t columns_per_part = std::max<std::int64_t>(16, elements_per_part / std::max<std::int64_t>(rows, 1));
  parallel_for(width, columns_per_part, [&](std::int64_t begin, std::int64_t end) {
    kernels::reduce<T>().sum_rows(x.data() + begin, rows, end - begin, width, columns.data() + begin, accumulate);
  });
}

template <typename T, typename D>
double sum(const Tensor<T, D>& x) {
  return block_sums(x.data(), x.numel(), kernels::reduce<T>().sum);
}

template <typename T, typename D>
double sum_of_squares(const Tensor<T, D>& x) {
  return block_sums(x.data(), x.numel(), kernels::reduce<T>().sum_of_squares);
}

#define TRIREME_INSTANTIATE(T)                                          \
  template void sum_rows(const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool); \
  template double sum(const Tensor<T, Cpu>&);                           \
  template double sum_of_squares(const Tensor<T, Cpu>&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);

}  // namespace trireme::ops
