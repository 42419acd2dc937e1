#include <limits>

#include "ops/cuda_compare.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/ops/matmul/float8.hpp"

// 8-bit products on a GPU against those of the CPU. Codes and scales are the same bits.
using namespace trireme;
using namespace trireme::ops;

namespace {

struct Sizes {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

// By delayed scaling with a history of this tensor's amax, which quantisation finds too, and larger ones.
template <typename F, typename T, typename D>
Quantized<F, D> quantized(const Tensor<T>& values) {
  const Tensor<T, D> x = values.template to<D>();
  const std::int64_t rows = x.shape().rows();
  const std::int64_t columns = x.shape().back();
  Tensor<float, D> largest({1});
  Tensor<float, D> history = Tensor<float, D>::full({1500}, 2);
  Quantized<F, D> y{.codes = Tensor<F, D>({rows, columns}),
                    .transposed = Tensor<F, D>({columns, rows}),
                    .scale = Tensor<float, D>({2}),
                    .amax = Tensor<float, D>({1})};
  amax(x, largest);
  push_amax(largest, history);
  push_amax(largest, history);
  delayed_float8_scale<F>(x, history, y.scale);
  quantize(x, y);
  require_identical(y.amax.template to<Cpu>(), largest.template to<Cpu>());
  return y;
}

template <typename F>
void require_same_codes(const Tensor<F, Cuda>& there, const Tensor<F>& here) {
  const Tensor<F> got = there.template to<Cpu>();
  REQUIRE(std::equal(got.data(), got.data() + got.numel(), here.data(), [](F a, F b) { return a.bits() == b.bits(); }));
}

template <typename F, typename T>
void compare_quantized(const Tensor<T>& x) {
  const auto here = quantized<F, T, Cpu>(x);
  const auto there = quantized<F, T, Cuda>(x);
  require_identical(there.scale.template to<Cpu>(), here.scale);
  require_same_codes(there.codes, here.codes);
  require_same_codes(there.transposed, here.transposed);
}

template <typename F, typename C>
void compare_products(const Sizes& sizes, bool accumulate, bool with_bias) {
  CAPTURE(sizes.m, sizes.n, sizes.k, accumulate, with_bias);
  const auto a = random_tensor<float>({sizes.m, sizes.k}, 1);
  const auto b = random_tensor<float>({sizes.n, sizes.k}, 2);
  const auto bias = with_bias ? random_tensor<float>({sizes.n}, 3) : Tensor<float>();
  auto c = random_tensor<C>({sizes.m, sizes.n}, 4);
  auto c_there = c.template to<Cuda>();
  const auto a_here = quantized<F, float, Cpu>(a);
  const auto b_here = quantized<float8_e4m3, float, Cpu>(b);
  const auto a_there = quantized<F, float, Cuda>(a);
  const auto b_there = quantized<float8_e4m3, float, Cuda>(b);
  float8_matmul<F>({a_here.codes, a_here.scale}, {b_here.codes, b_here.scale}, bias, c, accumulate);
  float8_matmul<F>({a_there.codes, a_there.scale}, {b_there.codes, b_there.scale},
                   with_bias ? bias.to<Cuda>() : Tensor<float, Cuda>(), c_there, accumulate);
  // The GPU keeps about 14 bits of a sum of such products, for two e4m3 over all of it.
  const double bound = std::is_same_v<F, float8_e4m3> ? 5e-2 : 2e-2;
  require_close(c_there.template to<Cpu>(), as_doubles(c), bound);
}

}  // namespace

TEST_CASE("without a history a delayed scale on the GPU is that of the tensor") {
  const auto x = random_tensor<float>({1000, 30}, 1, 3);
  Tensor<float> here({2});
  Tensor<float, Cuda> there({2});
  delayed_float8_scale<float8_e4m3>(x, Tensor<float>::zeros({40}), here);
  delayed_float8_scale<float8_e4m3>(x.to<Cuda>(), Tensor<float, Cuda>::full({40}, 0), there);
  require_identical(there.to<Cpu>(), here);
}

TEMPLATE_TEST_CASE("quantisation on the GPU", "", float, bfloat16) {
  for (const Shape& shape : {Shape{16, 16}, Shape{3, 32, 80}, Shape{256, 1024}}) {
    auto x = random_tensor<TestType>(shape, 1, 3);
    x.span()[3] = TestType(std::numeric_limits<float>::infinity());
    x.span()[5] = TestType(std::numeric_limits<float>::quiet_NaN());
    compare_quantized<float8_e4m3>(x);
    compare_quantized<float8_e5m2>(x);
  }
}

TEMPLATE_TEST_CASE("8-bit products on the GPU", "", float8_e4m3, float8_e5m2) {
  if (!device::cuda_device(device::current_cuda_device()).has_float8_products()) return;
  for (const Sizes& sizes : {Sizes{16, 16, 16}, Sizes{48, 80, 112}, Sizes{256, 768, 512}}) {
    for (const bool accumulate : {false, true}) {
      compare_products<TestType, float>(sizes, accumulate, false);
      compare_products<TestType, bfloat16>(sizes, accumulate, false);
    }
    compare_products<TestType, bfloat16>(sizes, false, true);
  }
}

TEST_CASE("a product on the GPU refuses scales that are not aligned") {
  if (!device::cuda_device(device::current_cuda_device()).has_float8_products()) return;
  const auto x = quantized<float8_e4m3, float, Cuda>(random_tensor<float>({16, 16}, 1));
  const auto scales = Tensor<float, Cuda>::full({4}, 1);
  Tensor<float, Cuda> c({16, 16});
  CHECK_THROWS_WITH(float8_matmul<float8_e4m3>({x.codes, x.scale}, {x.codes, scales.narrow(1, 2)}, Tensor<float, Cuda>(), c),
                    "float8_matmul: scales must begin at multiples of 16 bytes");
}
