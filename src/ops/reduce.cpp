#include "trireme/ops/reduce.hpp"

#include "ops/block_sums.hpp"
#include "ops/check.hpp"
#include "ops/floats.hpp"

namespace trireme::ops {

template <typename T, typename D>
void sum_rows(const Tensor<T, D>& x, Tensor<Accumulate<T>, D>& columns, bool accumulate) {
  const std::int64_t width = x.shape().back();
  require_count("sum_rows", "columns", columns.shape(), width);
  const std::int64_t rows = x.shape().rows();
  const auto& kernels = reduce_kernels().of<Accumulate<T>>();
  // Threads share out the columns, so each is summed in the order of the rows.
  parallel_ranges(width, 16, least_elements / std::max<std::int64_t>(rows, 1) + 1, [&](std::int64_t begin, std::int64_t end) {
    if constexpr (is_half<T>) {
      constexpr std::int64_t block_rows = 4;
      for (std::int64_t row = 0; row < rows; row += block_rows) {
        const std::int64_t count = std::min(block_rows, rows - row);
        for (std::int64_t first = begin; first < end; first += piece_elements / block_rows) {
          const std::int64_t columns_here = std::min(piece_elements / block_rows, end - first);
          float block[piece_elements];
          for (std::int64_t i = 0; i < count; ++i) {
            widen(x.data() + (row + i) * width + first, block + i * columns_here, columns_here);
          }
          kernels.sum_rows(block, count, columns_here, columns_here, columns.data() + first, accumulate || row > 0);
        }
      }
    } else {
      kernels.sum_rows(x.data() + begin, rows, width, end - begin, columns.data() + begin, accumulate);
    }
  });
}

template <typename T, typename D>
double sum(const Tensor<T, D>& x) {
  const auto& kernels = reduce_kernels().of<Accumulate<T>>();
  return combine_blocks<double>(
      x.numel(),
      [&](std::int64_t begin, std::int64_t count) {
        double total = 0;
        for_pieces<T>(begin, begin + count, [&](std::int64_t first, std::int64_t part) {
          total += kernels.sum(Input<T>(x.data() + first, part).data(), part);
        });
        return total;
      },
      [](double a, double b) { return a + b; });
}

template <typename T>
double sum_of_squares(const T* x, std::size_t count, Cpu) {
  const auto& kernels = reduce_kernels().of<T>();
  return combine_blocks<double>(
      static_cast<std::int64_t>(count),
      [&](std::int64_t begin, std::int64_t part) { return kernels.sum_of_squares(x + begin, part); },
      [](double a, double b) { return a + b; });
}

template void sum_rows(const Tensor<float, Cpu>&, Tensor<float, Cpu>&, bool);
template void sum_rows(const Tensor<double, Cpu>&, Tensor<double, Cpu>&, bool);
template void sum_rows(const Tensor<bfloat16, Cpu>&, Tensor<float, Cpu>&, bool);
template void sum_rows(const Tensor<float16, Cpu>&, Tensor<float, Cpu>&, bool);
template double sum(const Tensor<float, Cpu>&);
template double sum(const Tensor<double, Cpu>&);
template double sum(const Tensor<bfloat16, Cpu>&);
template double sum(const Tensor<float16, Cpu>&);
template double sum_of_squares(const float*, std::size_t, Cpu);
template double sum_of_squares(const double*, std::size_t, Cpu);

}  // namespace trireme::ops
