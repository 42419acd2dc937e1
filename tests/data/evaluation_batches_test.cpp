#include "trireme/data/loaders/evaluation_batches.hpp"

#include <numeric>
#include <ranges>
#include <string>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/loaders/token_windows.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

std::vector<int> counting(int count) {
  std::vector<int> items(static_cast<std::size_t>(count));
  std::iota(items.begin(), items.end(), 0);
  return items;
}

}  // namespace

TEST_CASE("all ranks together evaluate every item once, in its order") {
  for (const int count : {0, 1, 2, 5, 12, 13, 47, 48}) {
    for (const int ranks : {1, 2, 3, 4}) {
      for (const std::int64_t micro_batch_size : {0, 1, 2}) {
        CAPTURE(count, ranks, micro_batch_size);
        std::vector<int> seen;
        for (int index = 0; index < ranks; ++index) {
          const BatchOptions options{.batch_size = 24, .micro_batch_size = micro_batch_size, .index = index, .count = ranks};
          const auto batches = evaluation_batches(counting(count), options);
          std::int64_t read = 0;
          for (const ItemBatch<int>& batch : batches) {
            CHECK(batch.first_sample == std::ssize(seen));
            CHECK(!batch.items.empty());
            CHECK(std::ssize(batch.items) <= (micro_batch_size == 0 ? 24 / ranks : micro_batch_size));
            seen.insert(seen.end(), batch.items.begin(), batch.items.end());
            ++read;
          }
          CHECK(read == batches.size());
        }
        CHECK(seen == counting(count));
      }
    }
  }
  static_assert(std::ranges::input_range<EvaluationBatches<std::vector<int>, DefaultCollate>>);
  CHECK_THROWS_WITH(evaluation_batches(counting(9), {.batch_size = 6, .count = 4}), ContainsSubstring("multiple of 4"));
}

TEST_CASE("a function of the items makes the batches of an evaluation") {
  const auto sum = [](const std::vector<int>& items, std::int64_t) { return std::accumulate(items.begin(), items.end(), 0); };
  int total = 0;
  for (const int part : evaluation_batches(counting(100), {.batch_size = 32}, sum)) total += part;
  CHECK(total == 4950);
}

TEST_CASE("images are evaluated as a loader without augmentation gives them") {
  const ImageDataset images({.height = 1, .width = 2, .channels = 1}, {0, 255, 51, 102, 255, 0}, {0, 1, 2}, 3);
  std::vector<float> values;
  std::vector<std::int32_t> labels;
  for (const ImageBatch& batch : evaluation_batches(images, {.batch_size = 2})) {
    CHECK(batch.valid == batch.labels.dim(0));
    values.insert(values.end(), batch.images.span().begin(), batch.images.span().end());
    labels.insert(labels.end(), batch.labels.span().begin(), batch.labels.span().end());
  }
  const std::vector<float> expected = {0, 1, 0.2f, 0.4f, 1, 0};
  REQUIRE(values.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(values[i] == Approx(expected[i]));
  CHECK(labels == std::vector<std::int32_t>{0, 1, 2});

  const NormalizedImages normalized(images, {.mean = {0.2f}, .std = {0.5f}});
  const ImageBatch first = *evaluation_batches(normalized, {.batch_size = 3}).begin();
  CHECK(first.images.data()[1] == Approx(1.6));
  CHECK_THROWS_WITH(NormalizedImages(images, {.mean = {0}, .std = {0}}), ContainsSubstring("not above 0"));
  CHECK_THROWS_WITH(NormalizedImages(images, {.mean = {0, 0}, .std = {1, 1}}), ContainsSubstring("2 means"));
}

TEST_CASE("tokens are evaluated in windows without overlap") {
  std::string bytes;
  for (int i = 0; i < 34; ++i) bytes += static_cast<char>(i);
  const TokenWindows windows(TokenDataset::from_bytes(bytes), 8);
  CHECK(windows.size() == 4);
  std::vector<std::int32_t> targets;
  for (int index = 0; index < 3; ++index) {
    for (const TokenBatch& batch : evaluation_batches(windows, {.batch_size = 3, .index = index, .count = 3})) {
      CHECK(batch.time() == 8);
      targets.insert(targets.end(), batch.targets.span().begin(), batch.targets.span().end());
    }
  }
  REQUIRE(targets.size() == 32);
  for (std::size_t i = 0; i < targets.size(); ++i) CHECK(targets[i] == static_cast<std::int32_t>(i + 1));
  CHECK_THROWS_WITH(TokenWindows(TokenDataset::from_bytes(bytes), 34), ContainsSubstring("too few"));
}
