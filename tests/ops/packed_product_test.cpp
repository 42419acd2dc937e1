#include <cmath>
#include <limits>

#include "ops/compare.hpp"
#include "ops/threads.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/matmul/matmul.hpp"

// Products by our own kernels: all of float16, those of bfloat16 where the processor has no instructions for them, and of float
// small ones and those of many rows (src/ops/matmul/packed_product.hpp).
using namespace trireme;
using namespace trireme::ops;

namespace {

struct Sizes {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

// Rows, columns and depths below, at and above those of a strip, a panel and a block.
const Sizes sizes_of_tiles[] = {{1, 1, 1},    {1, 33, 17},   {6, 16, 7},    {7, 17, 8},     {13, 31, 9},      {14, 32, 16},
                                {15, 33, 15}, {28, 64, 385}, {29, 65, 511}, {16, 100, 513}, {20, 1500, 1100}, {300, 40, 30}};

template <typename T>
Tensor<T> stored(std::int64_t rows, std::int64_t columns, bool transposed, std::uint32_t seed) {
  return random_tensor<T>(transposed ? Shape{columns, rows} : Shape{rows, columns}, seed);
}

template <typename T>
Doubles naive(const Tensor<T>& a, const Tensor<T>& b, const Sizes& sizes, const MatmulOptions& options) {
  const Doubles left = as_doubles(a);
  const Doubles right = as_doubles(b);
  Doubles c(static_cast<std::size_t>(sizes.m * sizes.n));
  for (std::int64_t i = 0; i < sizes.m; ++i) {
    for (std::int64_t p = 0; p < sizes.k; ++p) {
      const double x = left[static_cast<std::size_t>(options.transpose_a ? p * sizes.m + i : i * sizes.k + p)];
      for (std::int64_t j = 0; j < sizes.n; ++j) {
        c[static_cast<std::size_t>(i * sizes.n + j)] +=
            x * right[static_cast<std::size_t>(options.transpose_b ? j * sizes.k + p : p * sizes.n + j)];
      }
    }
  }
  return c;
}

template <typename T, typename C>
Tensor<C> product(const Tensor<T>& a, const Tensor<T>& b, const Sizes& sizes, const MatmulOptions& options) {
  auto c = Tensor<C>::full({sizes.m, sizes.n}, C(2.0F));  // what accumulate adds to
  matmul(a, b, c, options);
  return c;
}

// The bound for sums as large as the square root of the depth, with a rounding in each addition.
double bound_of_float(std::int64_t k) { return 1e-7 * static_cast<double>(8 + k); }

}  // namespace

TEMPLATE_TEST_CASE("products of every form around the sizes of tiles", "", float, bfloat16, float16) {
  using T = TestType;
  constexpr double of_half = std::is_same_v<T, bfloat16> ? 0x1p-8 : 0x1p-11;
  for (const Sizes& sizes : sizes_of_tiles) {
    for (int form = 0; form < 8; ++form) {
      const MatmulOptions options{
          .transpose_a = (form & 1) != 0, .transpose_b = (form & 2) != 0, .accumulate = (form & 4) != 0};
      CAPTURE(sizes.m, sizes.n, sizes.k, form);
      const auto a = stored<T>(sizes.m, sizes.k, options.transpose_a, 1);
      const auto b = stored<T>(sizes.k, sizes.n, options.transpose_b, 2);
      Doubles expected = naive(a, b, sizes, options);
      if (options.accumulate) expected = add(expected, Doubles(expected.size(), 2));
      const double bound = bound_of_float(sizes.k);
      require_close(product<T, float>(a, b, sizes, options), expected, bound);
      if constexpr (!std::is_same_v<T, float>) require_close(product<T, T>(a, b, sizes, options), expected, of_half + bound);
    }
  }
}

TEST_CASE("tall products of float") {
  const Sizes sizes{1030, 130, 260};
  for (int form = 0; form < 3; ++form) {
    const MatmulOptions options{.transpose_a = form == 1, .transpose_b = form == 2};
    CAPTURE(form);
    const auto a = stored<float>(sizes.m, sizes.k, options.transpose_a, 1);
    const auto b = stored<float>(sizes.k, sizes.n, options.transpose_b, 2);
    require_close(product<float, float>(a, b, sizes, options), naive(a, b, sizes, options), bound_of_float(sizes.k));
  }
}

TEMPLATE_TEST_CASE("linear adds its bias once, however deep it is", "", float, bfloat16, float16) {
  using T = TestType;
  const Sizes deep = std::is_same_v<T, float> ? Sizes{1030, 130, 520} : Sizes{40, 33, 1100};
  for (const Sizes& sizes : {Sizes{3, 5, 7}, Sizes{16, 33, 5}, deep}) {
    CAPTURE(sizes.m, sizes.k);
    const auto x = stored<T>(sizes.m, sizes.k, false, 1);
    const auto weight = stored<T>(sizes.k, sizes.n, true, 2);
    const auto bias = random_tensor<float>({sizes.n}, 3);
    Doubles expected = naive(x, weight, sizes, {.transpose_b = true});
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += static_cast<double>(bias.span()[i % bias.span().size()]);
    Tensor<T> y({sizes.m, sizes.n});
    linear(x, weight, bias, y);
    constexpr double of_half = std::is_same_v<T, bfloat16> ? 0x1p-8 : std::is_same_v<T, float16> ? 0x1p-11 : 0;
    require_close(y, expected, of_half + bound_of_float(sizes.k));
  }
}

// For bfloat16 where our own kernels compute the products.
TEMPLATE_TEST_CASE("an element's bits depend on its row, its column and their depth alone", "", bfloat16, float16) {
  using T = TestType;
  for (int form = 0; form < 4; ++form) {
    const MatmulOptions options{.transpose_a = (form & 1) != 0, .transpose_b = (form & 2) != 0};
    const Sizes sizes{100, 90, 700};
    CAPTURE(form);
    const auto a = stored<T>(sizes.m, sizes.k, options.transpose_a, 1);
    const auto b = stored<T>(sizes.k, sizes.n, options.transpose_b, 2);
    Tensor<float> whole({sizes.m, sizes.n});
    with_threads(1, [&] { matmul(a, b, whole, options); });
    for (const int threads : {2, 3}) {
      Tensor<float> other({sizes.m, sizes.n});
      with_threads(threads, [&] { matmul(a, b, other, options); });
      require_identical(other, whole);
    }
    if (options.transpose_a || !options.transpose_b) continue;
    // Rows 31 to 72 and columns 20 to 56 of it.
    Tensor<float> part({41, 36});
    matmul(a.narrow(31, 41), b.narrow(20, 36), part, options);
    for (std::int64_t i = 0; i < 41; ++i) {
      for (std::int64_t j = 0; j < 36; ++j) {
        REQUIRE(part.data()[i * 36 + j] == whole.data()[(31 + i) * sizes.n + 20 + j]);
      }
    }
    for (std::int64_t rows = 1; rows <= 9; ++rows) {  // few of them are multiplied by other kernels
      Tensor<float> few({rows, sizes.n});
      matmul(a.narrow(31, rows), b, few, options);
      require_identical(few, whole.narrow(31, rows));
    }
  }
}

TEST_CASE("for inference a few rows of float have the same bits in any number, and those of a product") {
  for (const Sizes& sizes : {Sizes{8, 520, 391}, Sizes{8, 1000, 32}, Sizes{8, 67, 300}}) {
    CAPTURE(sizes.n, sizes.k);
    const auto x = stored<float>(sizes.m, sizes.k, false, 1);
    const auto weight = stored<float>(sizes.k, sizes.n, true, 2);
    const auto bias = random_tensor<float>({sizes.n}, 3);
    Doubles expected = naive(x, weight, sizes, {.transpose_b = true});
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += static_cast<double>(bias.span()[i % bias.span().size()]);
    Tensor<float> whole({sizes.m, sizes.n});
    linear(x, weight, bias, whole, LinearUse::inference);
    require_close(whole, expected, bound_of_float(sizes.k));
    for (std::int64_t rows = 1; rows <= 8; ++rows) {
      for (const int threads : {1, 3}) {
        Tensor<float> few({rows, sizes.n});
        with_threads(threads, [&] { linear(x.narrow(8 - rows, rows), weight, bias, few, LinearUse::inference); });
        require_identical(few, whole.narrow(8 - rows, rows));
      }
    }
    linear(x, weight, {}, whole, LinearUse::inference);
    require_close(whole, naive(x, weight, sizes, {.transpose_b = true}), bound_of_float(sizes.k));
  }
}

TEST_CASE("threads that share a product of many rows and of many columns give the bits of one") {
  for (const Sizes& sizes : {Sizes{2100, 70, 600}, Sizes{40, 3000, 600}}) {
    const auto a = stored<float16>(sizes.m, sizes.k, false, 1);
    const auto b = stored<float16>(sizes.k, sizes.n, true, 2);
    Tensor<float16> one({sizes.m, sizes.n});
    Tensor<float16> many({sizes.m, sizes.n});
    with_threads(1, [&] { matmul(a, b, one, {.transpose_b = true}); });
    with_threads(4, [&] { matmul(a, b, many, {.transpose_b = true}); });
    require_identical(many, one);
  }
}

TEST_CASE("a nan or infinity stays in its row or column") {
  const Sizes sizes{15, 33, 20};
  auto a = stored<float>(sizes.m, sizes.k, false, 1);
  auto b = stored<float>(sizes.k, sizes.n, false, 2);
  const auto before = product<float, float>(a, b, sizes, {});
  a.data()[14 * sizes.k + 3] = std::numeric_limits<float>::quiet_NaN();
  b.data()[5 * sizes.n + 32] = std::numeric_limits<float>::infinity();
  const auto c = product<float, float>(a, b, sizes, {});
  for (std::int64_t i = 0; i < sizes.m; ++i) {
    for (std::int64_t j = 0; j < sizes.n; ++j) {
      const float element = c.data()[i * sizes.n + j];
      if (i == 14) {
        CHECK(std::isnan(element));
      } else if (j == 32) {
        CHECK(!std::isfinite(element));
      } else {
        CHECK(element == before.data()[i * sizes.n + j]);
      }
    }
  }
}
