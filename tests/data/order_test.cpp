#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/loaders/window_loader.hpp"
#include "trireme/data/sources/permutation.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

std::vector<std::int64_t> all_of(const Permutation& permutation) {
  std::vector<std::int64_t> values;
  for (std::int64_t position = 0; position < permutation.size(); ++position) values.push_back(permutation(position));
  return values;
}

bool holds_each_once(const std::vector<std::int64_t>& values) {
  const std::set<std::int64_t> set(values.begin(), values.end());
  return set.size() == values.size() && *set.begin() == 0 && *set.rbegin() == std::ssize(values) - 1;
}

TokenDataset counting_bytes(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(i % 251);
  return TokenDataset::from_bytes(bytes);
}

}  // namespace

TEST_CASE("a permutation holds each element once, for any size") {
  for (std::int64_t size = 1; size <= 300; ++size) {
    INFO("size " << size);
    REQUIRE(holds_each_once(all_of(Permutation(size, 1, 0))));
  }
  for (const std::int64_t size : {4095, 4096, 4097, 100'003}) {
    INFO("size " << size);
    REQUIRE(holds_each_once(all_of(Permutation(size, 7, 3))));
  }
  CHECK_THROWS_AS(Permutation(0, 1, 0), Error);
  CHECK_THROWS_AS(Permutation(5, 1, 0)(5), Error);
  CHECK(Permutation(std::int64_t{1} << 62, 1, 0)(0) < std::int64_t{1} << 62);
}

TEST_CASE("a permutation is a function of seed and epoch alone") {
  CHECK(all_of(Permutation(1000, 1, 0)) == all_of(Permutation(1000, 1, 0)));
  CHECK(all_of(Permutation(1000, 1, 0)) != all_of(Permutation(1000, 2, 0)));
  CHECK(all_of(Permutation(1000, 1, 0)) != all_of(Permutation(1000, 1, 1)));
}

TEST_CASE("every element is as likely at every position") {
  const std::int64_t size = 10;
  const int epochs = 20'000;
  std::map<std::pair<std::int64_t, std::int64_t>, int> counts;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const Permutation permutation(size, 5, epoch);
    for (std::int64_t position = 0; position < size; ++position) ++counts[{position, permutation(position)}];
  }
  double chi_squared = 0;
  const double expected = static_cast<double>(epochs) / static_cast<double>(size);
  for (std::int64_t position = 0; position < size; ++position) {
    for (std::int64_t value = 0; value < size; ++value) {
      const double difference = counts[{position, value}] - expected;
      chi_squared += difference * difference / expected;
    }
  }
  CHECK(chi_squared < 81 + 5 * std::sqrt(2.0 * 81));  // 81 degrees of freedom
}

TEST_CASE("neighbours and fixed points of a permutation are those of chance") {
  const std::int64_t size = 50'000;
  const auto values = all_of(Permutation(size, 11, 2));
  int fixed_points = 0;
  int ascents = 0;
  double product = 0;
  const double mean = static_cast<double>(size - 1) / 2;
  for (std::size_t i = 0; i < values.size(); ++i) {
    fixed_points += values[i] == static_cast<std::int64_t>(i);
    if (i + 1 == values.size()) break;
    ascents += values[i] < values[i + 1];
    product += (static_cast<double>(values[i]) - mean) * (static_cast<double>(values[i + 1]) - mean);
  }
  const auto n = static_cast<double>(size);
  CHECK(fixed_points < 8);
  CHECK(std::abs(ascents - n / 2) < 5 * std::sqrt(n / 12));
  CHECK(std::abs(product / (n * n * n / 12)) < 5 / std::sqrt(n));  // correlation of neighbours
}

TEST_CASE("random windows start everywhere and nowhere else") {
  const WindowSampler sampler(15, 10, WindowOrder::random, 3);
  std::set<std::int64_t> starts;
  for (std::int64_t sample = 0; sample < 200; ++sample) starts.insert(sampler.start(sample));
  CHECK(starts == std::set<std::int64_t>{0, 1, 2, 3, 4});
  CHECK_THROWS_WITH(WindowSampler(10, 10, WindowOrder::random, 3), ContainsSubstring("10 tokens are too few"));
}

TEST_CASE("shuffled windows come once an epoch") {
  const WindowSampler sampler(101, 10, WindowOrder::shuffled, 3);
  REQUIRE(sampler.samples_per_epoch() == 10);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<std::int64_t> starts;
    for (std::int64_t position = 0; position < 10; ++position) starts.insert(sampler.start(10 * epoch + position));
    CHECK(starts == std::set<std::int64_t>{0, 10, 20, 30, 40, 50, 60, 70, 80, 90});
  }
}

TEST_CASE("validation windows lie at equal distances") {
  CHECK(evenly_spaced_windows(100, 10, 4) == std::vector<std::int64_t>{0, 25, 50, 75});
  CHECK(evenly_spaced_windows(12, 10, 4) == std::vector<std::int64_t>{0});
  CHECK(evenly_spaced_windows(11, 10, 64) == std::vector<std::int64_t>{0});
  CHECK_THROWS_AS(evenly_spaced_windows(10, 10, 1), Error);
}

TEST_CASE("targets are the tokens after") {
  const auto batch = read_windows(counting_bytes(100), std::vector<std::int64_t>{5, 89}, 10);
  REQUIRE(batch.tokens.shape() == Shape{2, 10});
  for (std::int64_t i = 0; i < 20; ++i) {
    CHECK(batch.tokens.data()[i] == (i < 10 ? 5 + i : 79 + i));
    CHECK(batch.targets.data()[i] == batch.tokens.data()[i] + 1);
  }
}

TEST_CASE("the samples of a step do not depend on the number of ranks or the micro-batch size") {
  const auto dataset = counting_bytes(5000);
  for (const WindowOrder order : {WindowOrder::random, WindowOrder::shuffled}) {
    const WindowLoaderOptions options{.batch = {.batch_size = 8, .seed = 9}, .length = 16, .order = order};
    for (const std::int64_t step : {0, 7, 100}) {
      const TokenBatch whole = WindowLoader(dataset, options).load(step);
      for (const int count : {1, 2, 4}) {
        for (const std::int64_t micro_batch_size : {1, 2}) {
          std::vector<std::int32_t> tokens;
          std::vector<std::int32_t> targets;
          for (int index = 0; index < count; ++index) {
            WindowLoaderOptions share = options;
            share.batch.micro_batch_size = micro_batch_size;
            share.batch.index = index;
            share.batch.count = count;
            const WindowLoader loader(dataset, share);
            for (std::int64_t micro_batch = 0; micro_batch < loader.num_micro_batches(); ++micro_batch) {
              const TokenBatch batch = loader.load(step, micro_batch);
              CHECK(batch.first_sample == 8 * step + std::ssize(tokens) / 16);
              tokens.insert(tokens.end(), batch.tokens.span().begin(), batch.tokens.span().end());
              targets.insert(targets.end(), batch.targets.span().begin(), batch.targets.span().end());
            }
          }
          CHECK(std::ranges::equal(tokens, whole.tokens.span()));
          CHECK(std::ranges::equal(targets, whole.targets.span()));
        }
      }
    }
  }
}

TEST_CASE("of a batch that the ranks do not divide the first have a sample more") {
  const auto dataset = counting_bytes(500);
  const WindowLoader whole(dataset, {.batch = {.batch_size = 11}, .length = 8});
  for (std::int64_t step = 0; step < 3; ++step) {
    const TokenBatch all = whole.load(step);
    std::int64_t row = 0;
    for (int index = 0; index < 4; ++index) {
      const WindowLoader loader(dataset,
                                {.batch = {.batch_size = 11, .index = index, .count = 4, .uneven = true}, .length = 8});
      const TokenBatch own = loader.load(step);
      CHECK(own.tokens.dim(0) == (index < 3 ? 3 : 2));
      CHECK(own.first_sample == all.first_sample + row);
      CHECK(std::ranges::equal(own.tokens.span(), all.tokens.narrow(row, own.tokens.dim(0)).span()));
      row += own.tokens.dim(0);
    }
    CHECK(row == 11);
  }
}

TEST_CASE("batches that cannot be shared equally are refused") {
  const auto dataset = counting_bytes(100);
  CHECK_THROWS_WITH(WindowLoader(dataset, {.batch = {.batch_size = 6, .count = 4}, .length = 8}),
                    ContainsSubstring("6 samples") && ContainsSubstring("multiple of 4"));
  CHECK_THROWS_WITH(
      WindowLoader(dataset, {.batch = {.batch_size = 6, .micro_batch_size = 1, .count = 4, .uneven = true}, .length = 8}),
      ContainsSubstring("in micro-batches of 1") && ContainsSubstring("multiple of 4"));
  CHECK_THROWS_WITH(WindowLoader(dataset, {.batch = {.batch_size = 3, .count = 4, .uneven = true}, .length = 8}),
                    ContainsSubstring("3 samples") && ContainsSubstring("at least 4"));
  CHECK_THROWS_WITH(WindowLoader(dataset, {.batch = {.batch_size = 6, .micro_batch_size = 4}, .length = 8}),
                    ContainsSubstring("micro-batches of 4"));
  CHECK_THROWS_WITH(WindowLoader(dataset, {.batch = {.batch_size = 6, .index = 2, .count = 2}, .length = 8}),
                    ContainsSubstring("share 2 of 2"));
  CHECK_THROWS_WITH(WindowLoader(dataset, {.batch = {.batch_size = 6}, .length = 100}), ContainsSubstring("too few"));
}

TEST_CASE("continued rows go on step by step, whoever reads them, and start over together") {
  const std::int64_t rows = 4;
  const std::int64_t length = 5;
  const TokenDataset tokens = counting_bytes(97);  // rows of 24 tokens: 4 windows each
  const auto all = [&](int count, std::int64_t micro_batch) {
    std::vector<std::int32_t> read;
    for (std::int64_t step = 0; step < 9; ++step) {
      for (int index = 0; index < count; ++index) {
        const WindowLoader loader(
            tokens, {.batch = {.batch_size = rows, .micro_batch_size = micro_batch, .index = index, .count = count},
                     .length = length,
                     .order = WindowOrder::continued});
        for (std::int64_t micro = 0; micro < loader.num_micro_batches(); ++micro) {
          const TokenBatch batch = loader.load(step, micro);
          CHECK(batch.continues == (step % 4 != 0));
          read.insert(read.end(), batch.tokens.data(), batch.tokens.data() + batch.tokens.numel());
        }
      }
    }
    return read;
  };
  const auto read = all(1, 0);
  CHECK(read == all(2, 1));
  CHECK(read == all(4, 1));
  for (std::int64_t step = 0; step < 9; ++step) {
    for (std::int64_t row = 0; row < rows; ++row) {
      CHECK(read[static_cast<std::size_t>((step * rows + row) * length)] == row * 24 + step % 4 * length);
    }
  }
  CHECK_THROWS_WITH(WindowSampler(20, 5, WindowOrder::continued, 1, 4), ContainsSubstring("too few for 4 rows"));
}
