#include "trireme/ops/matmul.hpp"

#include "ops/kernels/tables.hpp"
#include "ops/matmul_plan.hpp"
#include "ops/parallel_for.hpp"

namespace trireme::ops {
namespace {

struct Sizes {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

template <typename T>
Sizes checked_sizes(const Tensor<T>& a, const Tensor<T>& b, const Tensor<T>& c, MatmulOptions options) {
  const std::int64_t a_rows = a.shape().rows();
  const std::int64_t b_rows = b.shape().rows();
  const Sizes sizes{options.transpose_a ? a.shape().back() : a_rows, options.transpose_b ? b_rows : b.shape().back(),
                    options.transpose_a ? a_rows : a.shape().back()};
  const std::int64_t b_inner = options.transpose_b ? b.shape().back() : b_rows;
  require(sizes.k == b_inner && c.shape().rows() == sizes.m && c.shape().back() == sizes.n,
          "matmul: a {}{} times b {}{} does not give c {}", a.shape().str(), options.transpose_a ? "^T" : "", b.shape().str(),
          options.transpose_b ? "^T" : "", c.shape().str());
  return sizes;
}

void multiply(const float* a, const float* b, const float* bias, float* c, Sizes sizes, MatmulOptions options) {
  run_matmul_plan({.m = sizes.m,
                   .n = sizes.n,
                   .k = sizes.k,
                   .transpose_a = options.transpose_a,
                   .transpose_b = options.transpose_b,
                   .accumulate = options.accumulate,
                   .bias = bias != nullptr},
                  a, b, bias, c);
}

void multiply(const double* a, const double* b, const double* bias, double* c, Sizes sizes, MatmulOptions options) {
  const auto [m, n, k] = sizes;
  const std::int64_t a_row = options.transpose_a ? 1 : k;
  const std::int64_t a_column = options.transpose_a ? m : 1;
  const std::int64_t b_row = options.transpose_b ? 1 : n;
  const std::int64_t b_column = options.transpose_b ? k : 1;
  parallel_for(m, std::max<std::int64_t>(1, elements_per_part / std::max<std::int64_t>(n * k, 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 kernels::matmul_f64().run(a + begin * a_row, a_row, a_column, b, b_row, b_column, c + begin * n, end - begin,
                                           n, k, options.accumulate);
                 for (std::int64_t row = begin; bias != nullptr && row < end; ++row) {
                   for (std::int64_t column = 0; column < n; ++column) c[row * n + column] += bias[column];
                 }
               });
}

}  // namespace

template <typename T, typename D>
void matmul(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c, MatmulOptions options) {
  const Sizes sizes = checked_sizes(a, b, c, options);
  multiply(a.data(), b.data(), static_cast<const T*>(nullptr), c.data(), sizes, options);
}

template <typename T, typename D>
void linear(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<T, D>& bias, Tensor<T, D>& y) {
  const MatmulOptions options{.transpose_b = true};
  const Sizes sizes = checked_sizes(x, weight, y, options);
  require(!bias.defined() || bias.numel() == sizes.n, "linear: a bias of {} for {} outputs", bias.numel(), sizes.n);
  multiply(x.data(), weight.data(), bias.defined() ? bias.data() : nullptr, y.data(), sizes, options);
}

#define TRIREME_INSTANTIATE(T)                                                                        \
  template void matmul(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, MatmulOptions); \
  template void linear(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);

}  // namespace trireme::ops
