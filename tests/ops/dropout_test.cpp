#include <limits>

#include "ops/compare.hpp"
#include "ops/elementwise/dropout_body.hpp"
#include "ops/threads.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

constexpr RandomKey key{.seed = 5, .stream = 77, .step = 3, .first_index = 0};

Tensor<float> dropped(const Tensor<float>& x, double probability, const RandomKey& at) {
  Tensor<float> y(x.shape());
  dropout(x, probability, at, y);
  return y;
}

}  // namespace

TEST_CASE("dropped nan and infinity are nan, as PyTorch's") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const float element : dropped(Tensor<float>::full({100}, nan), 0.5, key).span()) CHECK(std::isnan(element));
  std::int64_t kept = 0;
  for (const float element : dropped(Tensor<float>::full({100}, infinity), 0.5, key).span()) {
    CHECK((std::isnan(element) || element == infinity));
    kept += element == infinity ? 1 : 0;
  }
  CHECK(kept > 0);
  CHECK(kept < 100);
}

TEMPLATE_TEST_CASE("dropout keeps the stated share and scales it", "", float, double) {
  const auto x = Tensor<TestType>::full({100000}, 2);
  Tensor<TestType> y(x.shape());
  dropout(x, 0.25, key, y);
  double kept = 0;
  for (const TestType element : y.span()) {
    REQUIRE((element == 0 || element == Approx(2 / 0.75)));
    kept += element == 0 ? 0 : 1;
  }
  CHECK(kept / 100000 == Approx(0.75).margin(0.006));  // four standard deviations

  const Tensor<TestType> once = y.clone();
  dropout(x, 0.25, key, y, true);
  require_close(y, add(as_doubles(once), as_doubles(once)), tolerance<TestType>(1e-6));
}

TEST_CASE("dropout draws by global index, whatever the part or the number of threads") {
  const auto x = random_tensor<float>({70001}, 1);
  Tensor<float> whole;
  with_threads(1, [&] { whole = dropped(x, 0.5, key); });
  with_threads(3, [&] { require_identical(dropped(x, 0.5, key), whole); });
  for (const std::int64_t begin : {1, 2, 3, 1026, 69990}) {
    const std::int64_t count = std::min<std::int64_t>(5000, 70001 - begin);
    RandomKey at = key;
    at.first_index = static_cast<std::uint64_t>(begin);
    require_identical(dropped(x.narrow(begin, count), 0.5, at), whole.narrow(begin, count));
  }
}

TEST_CASE("dropout draws other numbers for another seed, stream or step") {
  const auto x = Tensor<float>::full({1000}, 1);
  const auto first = dropped(x, 0.5, key);
  for (const RandomKey& other : {RandomKey{.seed = 6, .stream = 77, .step = 3}, RandomKey{.seed = 5, .stream = 78, .step = 3},
                                 RandomKey{.seed = 5, .stream = 77, .step = 4}}) {
    const auto second = dropped(x, 0.5, other);
    int same = 0;
    for (std::size_t i = 0; i < 1000; ++i) same += first.span()[i] == second.span()[i] ? 1 : 0;
    CHECK(same == Approx(500).margin(80));
  }
}

TEST_CASE("dropout refuses a probability outside [0, 1)") {
  const auto x = Tensor<float>::zeros({2});
  Tensor<float> y({2});
  CHECK_THROWS_WITH(dropout(x, 1.0, key, y), "dropout: the probability is 1, but must lie in [0, 1)");
  dropout(x, 0.0, key, y);
}

TEMPLATE_TEST_CASE("dropout as the GPU computes it, part by part", "", float, double, bfloat16, float16) {
  using T = TestType;
  for (const std::uint64_t first : {0, 1, 2, 3, 1026}) {
    for (const std::int64_t count : {1, 2, 3, 4, 1001}) {
      RandomKey at = key;
      at.first_index = first;
      const auto x = random_tensor<T>({count}, 1);
      for (const bool accumulate : {false, true}) {
        CAPTURE(first, count, accumulate);
        const double probability = accumulate ? 0.5 : 0.25;  // 2 * x + y is the same, fused by the compiler or not
        Tensor<T> y = x.clone();
        Tensor<T> of_parts = x.clone();
        dropout(x, probability, at, y, accumulate);
        const Dropout<T> all{.x = x.data(),
                             .factor = static_cast<Accumulate<T>>(1 / (1 - probability)),
                             .numbers = {.seed = at.seed,
                                         .stream = at.stream ^ (at.step * 0x9E3779B97F4A7C15),
                                         .first_index = first,
                                         .threshold = accumulate ? 1U << 31 : 1U << 30},
                             .y = of_parts.data(),
                             .count = count,
                             .accumulate = accumulate};
        for (std::int64_t part = 0; part < all.num_parts(); ++part) all.part(part);
        require_identical(of_parts, y);

        // The same place, part of which is read when the kernel runs.
        const RandomPosition position{.step = at.step, .first_sample = 2};
        Tensor<T> at_position = x.clone();
        Dropout<T> read = all;
        read.y = at_position.data();
        read.numbers.stream = at.stream;
        read.numbers.first_index = first % 2;
        read.position = &position;
        read.per_sample = first / 2;
        for (std::int64_t part = 0; part < read.num_parts(); ++part) read.part(part);
        require_identical(at_position, y);
      }
    }
  }
}
