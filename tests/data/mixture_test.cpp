#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/sources/block_permutation.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/loaders/loader.hpp"
#include "trireme/data/sources/grouped.hpp"
#include "trireme/data/sources/joined.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

// Items name the dataset and their place in it.
struct Named {
  int name = 0;
  std::int64_t count = 0;
  std::int64_t side_by_side = 1;

  std::int64_t size() const { return count; }
  std::int64_t neighbours() const { return side_by_side; }
  std::pair<int, std::int64_t> at(std::int64_t index) const { return {name, index}; }
};

using Items = std::vector<std::pair<int, std::int64_t>>;

// The items of steps [begin, end), read by `ranks` ranks in micro-batches of `micro_batch_size`.
Items items_of(const Joined<Named>& joined, LoaderOptions options, int ranks, std::int64_t begin, std::int64_t end,
               std::int64_t micro_batch_size = 0) {
  Items all;
  options.batch.count = ranks;
  options.batch.micro_batch_size = micro_batch_size;
  for (std::int64_t step = begin; step < end; ++step) {
    for (int rank = 0; rank < ranks; ++rank) {
      options.batch.index = rank;
      const Loader loader(joined, options);
      for (std::int64_t micro_batch = 0; micro_batch < loader.num_micro_batches(); ++micro_batch) {
        const auto batch = loader.load(step, micro_batch);
        CHECK(batch.first_sample == std::ssize(all) + begin * options.batch.batch_size);
        all.insert(all.end(), batch.items.begin(), batch.items.end());
      }
    }
  }
  return all;
}

Items of(const Items& items, int name) {
  Items found;
  for (const auto& item : items) {
    if (item.first == name) found.push_back(item);
  }
  return found;
}

}  // namespace

TEST_CASE("an order by blocks holds each element once, for any size, block and number of blocks at once") {
  for (const std::int64_t size : {1, 2, 5, 16, 17, 63, 64, 65, 1000}) {
    for (const std::int64_t block : {1, 2, 7, 16, 64, 2000}) {
      for (const std::int64_t at_once : {1, 2, 3, 16, 1000}) {
        for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
          INFO("size " << size << " block " << block << " at once " << at_once << " epoch " << epoch);
          const BlockPermutation order(size, block, at_once, 3, epoch);
          std::set<std::int64_t> seen;
          std::vector<std::int64_t> blocks;  // in the order in which they are first read
          std::int64_t most_open = 0;
          std::map<std::int64_t, std::int64_t> left;
          for (std::int64_t position = 0; position < size; ++position) {
            const std::int64_t index = order(position);
            REQUIRE((index >= 0 && index < size));
            REQUIRE(seen.insert(index).second);
            const std::int64_t of_block = index / block;
            if (!left.contains(of_block)) left[of_block] = std::min(block, size - of_block * block);
            if (--left[of_block] == 0) left.erase(of_block);
            most_open = std::max(most_open, std::ssize(left));
          }
          REQUIRE(most_open <= at_once);
        }
      }
    }
  }
  CHECK_THROWS_AS(BlockPermutation(0, 1, 1, 1, 0), Error);
  CHECK_THROWS_AS(BlockPermutation(10, 0, 1, 1, 0), Error);
  CHECK_THROWS_AS(BlockPermutation(10, 3, 2, 1, 0)(10), Error);
  const std::int64_t huge = std::int64_t{1} << 61;
  CHECK(BlockPermutation(huge, huge - 1, 16, 1, 0)(huge - 1) < huge);
}

TEST_CASE("an order by blocks mixes neighbours and differs by seed and epoch") {
  const auto all_of = [](std::uint64_t seed, std::uint64_t epoch) {
    const BlockPermutation order(4096, 64, 8, seed, epoch);
    std::vector<std::int64_t> values;
    for (std::int64_t position = 0; position < 4096; ++position) values.push_back(order(position));
    return values;
  };
  const auto values = all_of(1, 0);
  std::int64_t neighbours = 0;
  for (std::size_t at = 1; at < values.size(); ++at) neighbours += values[at] == values[at - 1] + 1 ? 1 : 0;
  CHECK(neighbours < 30);  // 4095 / 512 are expected
  CHECK(values != all_of(2, 0));
  CHECK(values != all_of(1, 1));
  CHECK(values == all_of(1, 0));
}

TEST_CASE("a mixture's weights change at their steps where batches grow too") {
  const Joined<Named> joined({Named{0, 1000}, Named{1, 900}});
  LoaderOptions options{.batch = {.batch_size = 10, .batch_size_from_step = {{4, 20}, {6, 40}}, .seed = 5},
                        .mixture = {{0, {1, 0}}, {5, {0, 1}}, {8, {0.5, 0.5}}}};
  const auto items_of_step = [&](std::int64_t step, int ranks) {
    Items items;
    options.batch.count = ranks;
    for (options.batch.index = 0; options.batch.index < ranks; ++options.batch.index) {
      for (const auto& item : Loader(joined, options).load(step).items) items.push_back(item);
    }
    return items;
  };
  std::map<int, Items> taken;
  for (std::int64_t step = 0; step < 12; ++step) {
    const Items items = items_of_step(step, 1);
    CHECK(std::ssize(items) == (step < 4 ? 10 : step < 6 ? 20 : 40));
    CHECK(items_of_step(step, 2) == items);
    if (step < 5) CHECK(of(items, 1).empty());
    if (step >= 5 && step < 8) CHECK(of(items, 0).empty());
    for (const auto& item : items) taken[item.first].push_back(item);
  }
  for (const auto& [part, items] : taken) CHECK(std::set(items.begin(), items.end()).size() == items.size());
}

TEST_CASE("a mixture takes its parts by their weights, each item once before any comes again") {
  const Joined<Named> joined({Named{0, 1000}, Named{1, 0}, Named{2, 300, 32}, Named{3, 70'000}});
  CHECK(joined.size() == 71'300);
  LoaderOptions options{.batch = {.batch_size = 100, .seed = 5}, .mixture = {{0, {0.25, 0, 0.05, 0.7}}}};
  const Items items = items_of(joined, options, 1, 0, 700);
  CHECK(std::abs(std::ssize(of(items, 0)) - 17'500) <= 200);
  CHECK(of(items, 1).empty());
  CHECK(std::abs(std::ssize(of(items, 2)) - 3'500) <= 100);
  for (const Named& part : {joined.part(0), joined.part(2), joined.part(3)}) {
    const Items taken = of(items, part.name);
    for (std::int64_t begin = 0; begin + part.count <= std::ssize(taken); begin += part.count) {
      const std::set<std::pair<int, std::int64_t>> epoch(taken.begin() + begin, taken.begin() + begin + part.count);
      REQUIRE(std::ssize(epoch) == part.count);
    }
    const std::int64_t rest = std::ssize(taken) % part.count;
    CHECK(std::ssize(std::set(taken.end() - rest, taken.end())) == rest);
  }
}

TEST_CASE("a mixture is the same for any number of ranks, micro-batches and places of resuming") {
  const Joined<Named> joined({Named{0, 50}, Named{1, 400, 16}, Named{2, 7}});
  LoaderOptions options{.batch = {.batch_size = 12, .seed = 9}, .mixture = {{0, {1, 2, 1}}, {4, {0, 1, 1}}, {9, {5, 1, 0}}}};
  const Items whole = items_of(joined, options, 1, 0, 20);
  Items parts = items_of(joined, options, 2, 0, 3, 2);
  for (const auto& [ranks, begin, end] : {std::tuple{4, 3, 5}, {3, 5, 11}, {6, 11, 20}}) {
    const Items more = items_of(joined, options, ranks, begin, end);
    parts.insert(parts.end(), more.begin(), more.end());
  }
  CHECK(parts == whole);
  CHECK(of(Items(whole.begin() + 4 * 12, whole.begin() + 9 * 12), 0).empty());
  CHECK(of(Items(whole.begin() + 9 * 12, whole.end()), 2).empty());
  const Items first = of(whole, 1);
  REQUIRE(first.size() < 400);  // so each at most once, over all phases
  CHECK(std::set(first.begin(), first.end()).size() == first.size());
}

TEST_CASE("far into the data a mixture is found by arithmetic") {
  const Joined<Named> joined({Named{0, 3'000'000'000}, Named{1, 7'000'000'000, 4096}});
  const Loader loader(joined, LoaderOptions{.batch = {.batch_size = 8}, .mixture = {{0, {1, 1}}, {1000, {3, 1}}}});
  const auto batch = loader.load(std::int64_t{1} << 40);
  CHECK(batch.items.size() == 8);
}

TEST_CASE("mixtures that make no sense are refused") {
  const Joined<Named> joined({Named{0, 50}, Named{1, 0}});
  const auto refuses = [&](std::vector<MixtureWeights> mixture, LastBatch last = LastBatch::filled) {
    CHECK_THROWS_AS(Loader(joined, LoaderOptions{.batch = {.batch_size = 4}, .last = last, .mixture = std::move(mixture)}),
                    Error);
  };
  refuses({{0, {1}}});
  refuses({{0, {1, 1}}});  // part 1 is empty
  refuses({{0, {0, 0}}});
  refuses({{0, {-1, 0}}});
  refuses({{0, {std::nan(""), 0}}});
  refuses({{0, {HUGE_VAL, 0}}});
  refuses({{1, {1, 0}}});
  refuses({{0, {1, 0}}, {0, {1, 0}}});
  refuses({{0, {1, 0}}, {INT64_MAX, {1, 0}}});
  refuses({{0, {1, 0}}}, LastBatch::dropped);
  CHECK_THROWS_AS(Loader(joined, LoaderOptions{.batch = {.batch_size = 4}, .block = -1}), Error);
  CHECK_THROWS_AS(Loader(joined, LoaderOptions{.batch = {.batch_size = 4}, .blocks_at_once = 0}), Error);
  const Joined<Named> both({Named{0, 50}, Named{1, 5}});
  CHECK_THROWS_AS(Loader(both, LoaderOptions{.batch = {.batch_size = 4}, .mixture = {{0, {1e9, 1}}}}), Error);
  CHECK_THROWS_AS(Joined<Named>({}), Error);
}

TEST_CASE("groups of items come by their weights") {
  const std::vector<std::int32_t> classes{7, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0, 0};
  const Grouped by_class(Named{1, 12}, classes);
  CHECK(by_class.parts().size() == 3);
  CHECK(by_class.at(0).second == 1);
  CHECK(by_class.at(9).second == 3);
  CHECK(by_class.at(11).second == 7);
  const Loader loader(by_class, LoaderOptions{.batch = {.batch_size = 300}, .mixture = {{0, by_class.equal_weights()}}});
  std::map<std::int32_t, int> counts;
  for (std::int64_t step = 0; step < 20; ++step) {
    for (const auto& item : loader.load(step).items) ++counts[classes[static_cast<std::size_t>(item.second)]];
  }
  for (const auto& [of_class, count] : counts) CHECK(std::abs(count - 2000) < 150);
  CHECK(counts.size() == 3);
  CHECK_THROWS_AS(Grouped(Named{1, 11}, classes), Error);
  CHECK_THROWS_AS(Grouped(Named{1, 1}, std::vector<std::int32_t>{-1}), Error);
  CHECK_THROWS_AS(by_class.at(12), Error);
}

TEST_CASE("without weights joined datasets are one") {
  const Joined<Named> joined({Named{0, 5}, Named{1, 8}});
  const Items items = items_of(joined, {.batch = {.batch_size = 13}}, 1, 0, 1);
  CHECK(std::set(items.begin(), items.end()).size() == 13);
  const Items in_order = items_of(joined, {.batch = {.batch_size = 13}, .order = Order::sequential}, 1, 0, 1);
  CHECK(in_order[4] == std::pair{0, std::int64_t{4}});
  CHECK(in_order[5] == std::pair{1, std::int64_t{0}});
}
