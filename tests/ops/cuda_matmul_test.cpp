#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "ops/compare.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/device/graph.hpp"
#include "trireme/device/stream.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"
#include "trireme/ops/matmul/batched_matmul.hpp"
#include "trireme/ops/matmul/linear_gelu.hpp"
#include "trireme/ops/matmul/products.hpp"
#include "trireme/ops/reduce/softmax.hpp"

// Matrix products on the GPU against the same on the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

// Sums go in another order than on the CPU; one rounding to T at the end.
template <typename T>
double bound() {
  return std::is_same_v<T, bfloat16> ? 0x1p-7 : std::is_same_v<T, float16> ? 0x1p-9 : tolerance<T>(1e-4);
}

template <typename T>
void require_same(const Tensor<T, Cuda>& got, const Tensor<T>& expected) {
  require_close(got.template to<Cpu>(), as_doubles(expected), bound<T>());
}

struct Sizes {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};
const std::vector<Sizes> all_sizes{{1, 1, 1}, {5, 7, 3}, {33, 17, 65}, {64, 96, 200}, {256, 128, 512}, {1, 768, 256}};

template <typename T, typename C>
void compare_products() {
  for (const Sizes& sizes : all_sizes) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        for (const bool accumulate : {false, true}) {
          CAPTURE(sizes.m, sizes.n, sizes.k, transpose_a, transpose_b, accumulate);
          const auto a = random_tensor<T>(transpose_a ? Shape{sizes.k, sizes.m} : Shape{sizes.m, sizes.k}, 1);
          const auto b = random_tensor<T>(transpose_b ? Shape{sizes.n, sizes.k} : Shape{sizes.k, sizes.n}, 2);
          auto c = random_tensor<C>({sizes.m, sizes.n}, 3);
          auto c_there = c.template to<Cuda>();
          matmul(a, b, c, {transpose_a, transpose_b, accumulate});
          matmul(a.template to<Cuda>(), b.template to<Cuda>(), c_there, {transpose_a, transpose_b, accumulate});
          require_same(c_there, c);
        }
      }
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("products with every transpose, overwriting and adding", "", float, double, bfloat16, float16) {
  compare_products<TestType, TestType>();
}

TEMPLATE_TEST_CASE("products of half types that stay float", "", bfloat16, float16) { compare_products<TestType, float>(); }

TEMPLATE_TEST_CASE("products of operands that are not aligned", "", float, double, bfloat16, float16) {
  using T = TestType;
  const auto a = random_tensor<T>({8 * 16 + 1}, 1);
  const auto b = random_tensor<T>({16 * 24 + 1}, 2);
  Tensor<T> c({8, 24});
  const Tensor<T, Cuda> block({8 * 24 + 1});
  Tensor<T, Cuda> c_there = block.narrow(1, 8 * 24).reshape({8, 24});
  matmul(a.narrow(1, 8 * 16).reshape({8, 16}), b.narrow(1, 16 * 24).reshape({16, 24}), c);
  matmul(a.template to<Cuda>().narrow(1, 8 * 16).reshape({8, 16}), b.template to<Cuda>().narrow(1, 16 * 24).reshape({16, 24}),
         c_there);
  require_same(c_there, c);
}

TEMPLATE_TEST_CASE("products over no elements, and of none", "", float, double, bfloat16, float16) {
  using T = TestType;
  const Tensor<T, Cuda> a({2, 0});
  const Tensor<T, Cuda> b({0, 3});
  const auto sevens = Tensor<T>::full({2, 3}, T(7.0f));
  auto c = sevens.template to<Cuda>();
  matmul(a, b, c, {.accumulate = true});
  require_same(c, sevens);
  matmul(a, b, c);
  require_same(c, Tensor<T>::zeros({2, 3}));
  const auto bias = random_tensor<Accumulate<T>>({3}, 1);
  Tensor<T> expected({2, 3});
  linear(Tensor<T>({2, 0}), Tensor<T>({3, 0}), bias, expected);
  linear(a, Tensor<T, Cuda>({3, 0}), bias.template to<Cuda>(), c);
  require_same(c, expected);
  Tensor<T, Cuda> none({0, 3});
  matmul(Tensor<T, Cuda>({0, 2}), c, none);
}

TEMPLATE_TEST_CASE("linear layers with and without bias", "", float, double, bfloat16, float16) {
  using T = TestType;
  for (const auto& [rows, out, in] : all_sizes) {
    CAPTURE(rows, out, in);
    const auto x = random_tensor<T>({rows, in}, 1);
    const auto weight = random_tensor<T>({out, in}, 2);
    for (const auto& bias : {Tensor<Accumulate<T>>(), random_tensor<Accumulate<T>>({out}, 3)}) {
      Tensor<T> y({rows, out});
      Tensor<T, Cuda> y_there(y.shape());
      linear(x, weight, bias, y);
      linear(x.template to<Cuda>(), weight.template to<Cuda>(),
             bias.defined() ? bias.template to<Cuda>() : Tensor<Accumulate<T>, Cuda>(), y_there);
      require_same(y_there, y);
    }
  }
}

TEMPLATE_TEST_CASE("batches with broadcast dims, forward and backward", "", float, double, bfloat16, float16) {
  using T = TestType;
  const std::vector<std::pair<Shape, Shape>> cases{{{2, 3, 4, 5}, {2, 3, 5, 6}}, {{2, 3, 4, 5}, {3, 5, 6}},
                                                   {{2, 1, 4, 5}, {3, 5, 6}},    {{4, 5}, {2, 3, 5, 6}},
                                                   {{2, 3, 4, 5}, {5, 6}},       {{0, 4, 5}, {1, 5, 6}}};
  for (const auto& [of_a, of_b] : cases) {
    for (const bool accumulate : {false, true}) {
      CAPTURE(of_a.str(), of_b.str(), accumulate);
      const auto a = random_tensor<T>(of_a, 1);
      const auto b = random_tensor<T>(of_b, 2);
      auto c = random_tensor<T>(batched_matmul_shape(of_a, of_b), 3);
      auto c_there = c.template to<Cuda>();
      batched_matmul(a, b, c, {.accumulate = accumulate});
      batched_matmul(a.template to<Cuda>(), b.template to<Cuda>(), c_there, {.accumulate = accumulate});
      require_same(c_there, c);
      const auto dc = random_tensor<T>(c.shape(), 4);
      auto da = random_tensor<T>(of_a, 5);
      auto db = random_tensor<T>(of_b, 6);
      auto da_there = da.template to<Cuda>();
      auto db_there = db.template to<Cuda>();
      batched_matmul_backward<T, Cpu>({a, b, dc, da, accumulate, db, accumulate});
      batched_matmul_backward<T, Cuda>(
          {a.template to<Cuda>(), b.template to<Cuda>(), dc.template to<Cuda>(), da_there, accumulate, db_there, accumulate});
      require_same(da_there, da);
      require_same(db_there, db);
    }
  }
}

TEMPLATE_TEST_CASE("a linear layer with the GELU behind it, forward and backward", "", float, double, bfloat16, float16) {
  using T = TestType;
  const auto there = [](const auto& tensor) { return tensor.template to<Cuda>(); };
  for (const auto& [rows, out, in] : {Sizes{33, 96, 64}, {33, 92, 64}, {33, 96, 12}, {1, 8, 64}, {0, 96, 64}}) {
    CAPTURE(rows, out, in);
    const auto x = random_tensor<T>({rows, in}, 1);
    const auto weight = random_tensor<T>({out, in}, 2, 0.1);
    for (const auto& bias : {Tensor<Accumulate<T>>(), random_tensor<Accumulate<T>>({out}, 3)}) {
      Tensor<T> gelu_input({rows, out});
      Tensor<T> y(gelu_input.shape());
      linear_gelu(x, weight, bias, gelu_input, y);
      Tensor<T, Cuda> gelu_input_there(y.shape());
      Tensor<T, Cuda> y_there(y.shape());
      linear_gelu(there(x), there(weight), bias.defined() ? there(bias) : Tensor<Accumulate<T>, Cuda>(), gelu_input_there,
                  y_there);
      require_same(gelu_input_there, gelu_input);
      activation(Activation::gelu_tanh, gelu_input_there.template to<Cpu>(), y);  // whose rounding may differ by one
      require_same(y_there, y);

      const auto dy = random_tensor<T>({rows, in}, 4);
      const auto next = random_tensor<T>({in, out}, 5, 0.1);
      Tensor<T> dx(y.shape());
      linear_gelu_backward(dy, next, gelu_input, dx);
      Tensor<T, Cuda> dx_there(y.shape());
      linear_gelu_backward(there(dy), there(next), there(gelu_input), dx_there);
      require_same(dx_there, dx);
    }
  }
}

TEST_CASE("products of float round to TF32 only where that is allowed") {
  // So large that TF32 is faster by far: cuBLASLt may stay with float where that is as fast.
  const auto a = random_tensor<float>({2048, 512}, 1);
  const auto b = random_tensor<float>({512, 2048}, 2);
  Tensor<float> exact({2048, 2048});
  matmul(a, b, exact);
  const auto error = [&] {
    Tensor<float, Cuda> c(exact.shape());
    matmul(a.to<Cuda>(), b.to<Cuda>(), c);
    const auto back = c.to<Cpu>();
    double largest = 0;
    for (std::int64_t i = 0; i < back.numel(); ++i) {
      const double difference = std::abs(static_cast<double>(back.data()[i]) - static_cast<double>(exact.data()[i]));
      if (!(difference <= largest)) largest = difference;  // NaN too
    }
    return largest;
  };
  CHECK(error() < 5e-4);
  device::allow_tf32(true);
  const double rounded = error();
  device::allow_tf32(false);
  CHECK(rounded > 5e-3);
  CHECK(rounded < 0.2);
  CHECK(error() < 5e-4);
}

TEST_CASE("a product sees the result of the one before") {
  const auto a = random_tensor<float>({64, 64}, 1);
  Tensor<float> once({64, 64});
  Tensor<float> twice({64, 64});
  matmul(a, a, once);
  matmul(once, a, twice);
  const auto there = a.to<Cuda>();
  Tensor<float, Cuda> once_there({64, 64});
  Tensor<float, Cuda> twice_there({64, 64});
  matmul(there, there, once_there);
  matmul(once_there, there, twice_there);
  require_close(twice_there.to<Cpu>(), as_doubles(twice), 1e-3);
}

TEST_CASE("a product that a graph captures first is not timed and runs with the graph") {
  const auto a = random_tensor<float>({48, 80}, 1);
  const auto b = random_tensor<float>({80, 56}, 2);
  Tensor<float> expected({48, 56});
  matmul(a, b, expected);
  const device::Stream& stream = device::current_stream();
  const auto a_there = a.to<Cuda>();
  const auto b_there = b.to<Cuda>();
  auto c_there = Tensor<float, Cuda>::zeros({48, 56});
  Tensor<float, Cuda> square({48, 48});
  matmul(a_there, a_there, square, {.transpose_b = true});  // the stream has its workspace
  stream.wait();
  const device::Graph graph([&] { matmul(a_there, b_there, c_there); });
  require_close(c_there.to<Cpu>(), Doubles(48 * 56, 0), 0);
  graph.launch();
  require_same(c_there, expected);
}

TEST_CASE("the algorithm of a product is timed once and kept in a file") {
  const tests::TemporaryFolder temporary;
  setenv("TRIREME_PLAN_CACHE", temporary.path().c_str(), 1);
  const auto text_after_product = [&] {
    std::thread([] {  // which knows no plan
      const auto a = Tensor<float, Cuda>::zeros({64, 64});
      Tensor<float, Cuda> c({64, 64});
      matmul(a, a, c, {.transpose_b = true});
      device::current_stream().wait();
    })
        .join();
    const std::filesystem::directory_iterator files(temporary.path());
    REQUIRE(files != std::filesystem::directory_iterator());
    std::ifstream file(files->path());
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string first = text_after_product();
  CHECK_THAT(first, ContainsSubstring("64x64x64 nt float32 to float32"));
  CHECK(text_after_product() == first);
  setenv("TRIREME_PLAN_CACHE", "", 1);
}

TEMPLATE_TEST_CASE("products of vectors and einsum on the GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  const auto a = random_tensor<T>({4, 30, 20}, 1), b = random_tensor<T>({4, 20, 10}, 2), v = random_tensor<T>({20}, 3);
  const auto there = [](const Tensor<T>& x) { return x.template to<Cuda>(); };
  require_same(matmul(there(a), there(v)), matmul(a, v));
  require_same(dot(there(v), there(v)), dot(v, v));
  require_same(einsum("bij,bjk->kbi", there(a), there(b)), einsum("bij,bjk->kbi", a, b));
  require_same(einsum("bij->ib", there(a)), einsum("bij->ib", a));
  require_same(softmax(there(a), 0), softmax(a, 0));
}
