#include "trireme/ops/reduce.hpp"

#include "ops/block_sums.hpp"
#include "ops/check.hpp"

namespace trireme::ops {

template <typename T, typename D>
void sum_rows(const Tensor<T, D>& x, Tensor<T, D>& columns, bool accumulate) {
  const std::int64_t width = x.shape().back();
  require_count("sum_rows", "columns", columns.shape(), width);
  const std::int64_t rows = x.shape().rows();
  const auto& kernels = reduce_kernels().of<T>();
  // Threads share out the columns, so each is summed in the order of the rows.
  parallel_ranges(width, 16, least_elements / std::max<std::int64_t>(rows, 1) + 1, [&](std::int64_t begin, std::int64_t end) {
    kernels.sum_rows(x.data() + begin, rows, width, end - begin, columns.data() + begin, accumulate);
  });
}

template <typename T, typename D>
double sum(const Tensor<T, D>& x) {
  const auto& kernels = reduce_kernels().of<T>();
  return combine_blocks<double>(
      x.numel(), [&](std::int64_t begin, std::int64_t count) { return kernels.sum(x.data() + begin, count); },
      [](double a, double b) { return a + b; });
}

template <typename T, typename D>
double sum_of_squares(const Tensor<T, D>& x) {
  const auto& kernels = reduce_kernels().of<T>();
  return combine_blocks<double>(
      x.numel(), [&](std::int64_t begin, std::int64_t count) { return kernels.sum_of_squares(x.data() + begin, count); },
      [](double a, double b) { return a + b; });
}

template void sum_rows(const Tensor<float, Cpu>&, Tensor<float, Cpu>&, bool);
template void sum_rows(const Tensor<double, Cpu>&, Tensor<double, Cpu>&, bool);
template double sum(const Tensor<float, Cpu>&);
template double sum(const Tensor<double, Cpu>&);
template double sum_of_squares(const Tensor<float, Cpu>&);
template double sum_of_squares(const Tensor<double, Cpu>&);

}  // namespace trireme::ops
