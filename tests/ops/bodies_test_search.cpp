#include "ops/compare.hpp"
#include "ops/search/cumulative_body.hpp"
#include "ops/search/search_body.hpp"
#include "ops/search/sort_body.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/search/cumulative.hpp"
#include "trireme/ops/search/sort.hpp"

// The searches of a GPU, run by the host index after index, against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

constexpr std::int64_t outer = 3;
constexpr std::int64_t reduced = 37;
constexpr std::int64_t inner = 5;
const ReduceSizes sizes{outer, reduced, inner};

template <typename Body>
void run(std::int64_t count, const Body& body) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

// With elements that are equal.
template <typename T>
Tensor<T> rough(std::uint32_t seed) {
  Tensor<T> x = random_tensor<T>({outer, reduced, inner}, seed, 4);
  for (T& element : x.span()) element = static_cast<T>(std::round(static_cast<Accumulate<T>>(element)));
  return x;
}

}  // namespace

TEMPLATE_TEST_CASE("extremes by the threads of a GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  auto x = rough<T>(1);
  x.at(1, 20, 3) = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
  for (const std::int64_t parts : {1, 4}) {
    const auto found = max_with_index(x, 1);
    const Tensor<T> extremes = max(x, 1);
    const Tensor<std::int64_t> first({outer, parts, inner}), indices({outer, inner});
    run(first.numel(), FirstExtreme<T>{sizes, parts, x.data(), extremes.data(), first.data()});
    run(indices.numel(),
        ReduceParts<std::int64_t>{Accumulation::minimum, {outer, parts, inner}, 1, first.data(), nullptr, indices.data()});
    require_identical(indices, found.indices);
    const Tensor<T> values(indices.shape());
    run(values.numel(), Take<T>{sizes, 1, x.data(), indices.data(), values.data()});
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      CHECK(std::isnan(static_cast<double>(values.data()[i])) == (i == inner + 3));
      if (i != inner + 3) CHECK(static_cast<double>(values.data()[i]) == static_cast<double>(found.values.data()[i]));
    }
  }
}

TEMPLATE_TEST_CASE("sorts by the threads of a GPU", "", float, double, bfloat16, float16, std::int32_t, std::int64_t) {
  using T = TestType;
  Tensor<T> x({outer, reduced, inner});
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = static_cast<T>(static_cast<float>(i * 7 % 11 - 5));
  constexpr std::int64_t length = 64;
  for (const bool descending : {false, true}) {
    std::vector<Ranked> elements(outer * inner * length);
    run(std::ssize(elements), RankElements<T>{sizes, x.data(), descending, length, elements.data()});
    for (std::int64_t sorted = 2; sorted <= length; sorted *= 2) {
      for (std::int64_t distance = sorted / 2; distance > 0; distance /= 2) {
        run(std::ssize(elements) / 2, CompareElements{length, sorted, distance, elements.data()});
      }
    }
    for (const std::int64_t taken : {std::int64_t{4}, reduced}) {
      const auto expected = topk(x, taken, 1, descending);
      const Tensor<T> values(expected.values.shape());
      const Tensor<std::int64_t> indices(values.shape());
      run(values.numel(), TakeRanked<T>{sizes, length, taken, elements.data(), x.data(), values.data(), indices.data()});
      require_identical(indices, expected.indices);
      CHECK(as_doubles(values) == as_doubles(expected.values));
    }
  }
}

TEMPLATE_TEST_CASE("cumulative sums and products by the threads of a GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  const auto x = random_tensor<T>({outer, reduced, inner}, 1);
  const double bound = std::is_same_v<T, bfloat16> ? 0x1p-7 : std::is_same_v<T, float16> ? 0x1p-10 : tolerance<T>(1e-6);
  for (const std::int64_t chunks : {1, 4}) {
    for (const auto& [kind, accumulation] :
         {std::pair(Cumulative::sum, Accumulation::sum), std::pair(Cumulative::product, Accumulation::product)}) {
      for (const bool backwards : {false, true}) {
        for (const bool accumulate : {false, true}) {
          Tensor<T> expected = random_tensor<T>(x.shape(), 2);
          const Tensor<T> y = expected.clone();
          cumulate(kind, x, 1, backwards, expected, accumulate);
          const Tensor<double> totals({outer, chunks, inner});
          const CumulateChunks<T> of{accumulation, sizes, chunks, backwards, x.data()};
          run(totals.numel(), ChunkTotals<T>{of, totals.data()});
          run(totals.numel(), CumulateChunk<T, T>{of, totals.data(), y.data(), accumulate});
          require_close(y, as_doubles(expected), bound);
        }
      }
    }
  }
}
