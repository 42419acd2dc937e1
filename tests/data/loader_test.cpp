#include "trireme/data/loaders/loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/data/loaders/batch_loader.hpp"
#include "trireme/data/loaders/image_loader.hpp"
#include "trireme/data/loaders/window_loader.hpp"
#include "trireme/data/sources/batch_share.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

std::vector<int> counting(int count) {
  std::vector<int> items(static_cast<std::size_t>(count));
  std::iota(items.begin(), items.end(), 0);
  return items;
}

// What the ranks read of a step, micro-batch by micro-batch.
struct Read {
  std::vector<int> items;
  std::vector<std::int64_t> samples;  // the number of each
};

Read read_step(const std::vector<int>& dataset, LoaderOptions options, int ranks, std::int64_t step) {
  Read read;
  options.batch.count = ranks;
  for (options.batch.index = 0; options.batch.index < ranks; ++options.batch.index) {
    const Loader loader(dataset, options);
    std::set<std::size_t> sizes;
    for (std::int64_t micro_batch = 0; micro_batch < loader.num_micro_batches(); ++micro_batch) {
      const ItemBatch<int> batch = loader.load(step, micro_batch);
      sizes.insert(batch.items.size());
      for (std::size_t row = 0; row < batch.items.size(); ++row) {
        read.items.push_back(batch.items[row]);
        read.samples.push_back(batch.first_sample + static_cast<std::int64_t>(row));
      }
    }
    CHECK(sizes.size() == 1);  // every micro-batch has as many nominal targets
  }
  return read;
}

Read read_steps(const std::vector<int>& dataset, const LoaderOptions& options, int ranks, std::int64_t steps) {
  Read read;
  for (std::int64_t step = 0; step < steps; ++step) {
    const Read more = read_step(dataset, options, ranks, step);
    read.items.insert(read.items.end(), more.items.begin(), more.items.end());
    read.samples.insert(read.samples.end(), more.samples.begin(), more.samples.end());
  }
  return read;
}

struct Batch {
  Tensor<float> x;
  std::int64_t first_sample;
};

// The example of batch_loader.hpp.
class NoiseLoader {
 public:
  explicit NoiseLoader(const BatchOptions& options) : seed_(options.seed), share_(options) {}

  std::int64_t num_micro_batches() const { return share_.num_micro_batches(); }
  std::int64_t batch_size() const { return share_.batch_size(); }
  std::int64_t samples_of_steps(std::int64_t steps) const { return share_.samples_of_steps(steps); }
  std::int64_t samples_per_epoch() const { return 1000; }
  Batch load(std::int64_t step, std::int64_t micro_batch = 0) const {
    const std::int64_t first = share_.first_sample(step, micro_batch);
    Tensor<float> x({share_.micro_batch_size(step), 8});
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      x.data()[i] = static_cast<float>(philox_normal(seed_, hash_name("noise"), static_cast<std::uint64_t>(first * 8 + i)));
    }
    return {.x = x, .first_sample = first};
  }

 private:
  std::uint64_t seed_;
  BatchShare share_;
};

static_assert(BatchLoader<NoiseLoader>);
static_assert(BatchLoader<WindowLoader>);
static_assert(BatchLoader<ImageLoader>);
static_assert(BatchLoader<Loader<std::vector<int>>>);
static_assert(!BatchLoader<std::vector<int>>);

}  // namespace

TEST_CASE("all ranks together read each item once an epoch") {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const std::int64_t micro_batches : {1, 2}) {
      for (const Order order : {Order::shuffled, Order::sequential}) {
        for (const LastBatch last : {LastBatch::filled, LastBatch::dropped, LastBatch::partial}) {
          for (const int rest : {0, 24}) {
            CAPTURE(ranks, micro_batches, static_cast<int>(order), static_cast<int>(last), rest);
            const std::int64_t batch_size = 48;  // a multiple of 2 * 3 and of 2 * 4
            const int count = 2 * 48 + rest;
            const LoaderOptions options{
                .batch = {.batch_size = batch_size, .micro_batch_size = batch_size / ranks / micro_batches, .seed = 5},
                .order = order,
                .last = last};
            const Loader loader(counting(count), options);
            const bool smaller = rest > 0 && last == LastBatch::partial;
            CHECK(loader.steps_per_epoch() == (rest > 0 && last != LastBatch::dropped ? 3 : 2));
            CHECK(loader.samples_per_epoch() == (last == LastBatch::dropped ? 96 : count));
            CHECK(loader.batch_size() == batch_size);

            // Four epochs.
            const std::int64_t steps = steps_of_samples(loader, 4 * loader.samples_per_epoch());
            CHECK(steps == (rest > 0 && smaller ? 12 : rest > 0 && last == LastBatch::filled ? 10 : 8));
            const Read read = read_steps(counting(count), options, ranks, steps);
            REQUIRE(std::ssize(read.items) == samples_of_steps(loader, steps));
            REQUIRE(std::ssize(read.items) == 4 * loader.samples_per_epoch());
            for (std::int64_t i = 0; i < std::ssize(read.samples); ++i) CHECK(read.samples[static_cast<std::size_t>(i)] == i);
            std::set<std::vector<int>> orders;
            for (int epoch = 0; epoch < 4; ++epoch) {
              const auto first = read.items.begin() + epoch * loader.samples_per_epoch();
              const std::vector<int> items(first, first + loader.samples_per_epoch());
              CHECK(std::set(items.begin(), items.end()).size() == items.size());
              orders.insert(items);
              if (order == Order::sequential) CHECK(std::ranges::is_sorted(items));
            }
            CHECK(orders.size() == (order == Order::shuffled ? 4 : 1));

            // The same for one rank and one micro-batch.
            LoaderOptions alone = options;
            alone.batch.micro_batch_size = 0;
            CHECK(read_steps(counting(count), alone, 1, steps).items == read.items);
          }
        }
      }
    }
  }
}

TEST_CASE("batches of other sizes from a step on hold the same samples in the same order, on any number of ranks") {
  const std::vector<int> dataset = counting(50);
  const BatchOptions one_size{.batch_size = 12, .seed = 3};
  const std::vector<int> order = read_steps(dataset, {.batch = one_size}, 1, 40).items;
  const auto same_order = [&](const BatchOptions& batch, int ranks) {
    constexpr std::int64_t steps = 9;
    const Read read = read_steps(dataset, {.batch = batch}, ranks, steps);
    const Loader loader(dataset, batch);
    std::int64_t samples = 0;
    for (std::int64_t step = 0; step <= steps; ++step) {
      CHECK(samples_of_steps(loader, step) == samples);
      CHECK(steps_of_samples(loader, samples) == step);
      if (step > 0) CHECK(steps_of_samples(loader, samples - 1) == step);
      samples += batch_size_of(batch, step);
    }
    REQUIRE(std::ssize(read.items) == samples_of_steps(loader, steps));
    CHECK(std::equal(read.items.begin(), read.items.end(), order.begin()));
    for (std::int64_t i = 0; i < std::ssize(read.samples); ++i) REQUIRE(read.samples[static_cast<std::size_t>(i)] == i);
  };
  const BatchSizes grows{{2, 24}, {3, 36}, {7, 48}}, uneven{{1, 13}, {4, 7}, {5, 30}};
  for (const int ranks : {1, 2, 3, 4}) {
    INFO(ranks << " ranks");
    BatchOptions batch = one_size;
    batch.batch_size_from_step = grows;
    same_order(batch, ranks);
    batch.micro_batch_size = 12 / ranks;
    same_order(batch, ranks);
    batch.micro_batch_size = 1;  // a rank has 12 / ranks micro-batches in each step
    same_order(batch, ranks);
    batch.micro_batch_size = 0;
    batch.batch_size_from_step = uneven;
    batch.uneven = true;
    same_order(batch, ranks);
  }
  CHECK(Loader(dataset, BatchOptions{.batch_size = 12, .batch_size_from_step = grows}).steps_per_epoch() == 4);

  const auto text = TokenDataset::from_bytes(std::string(1000, 'x'));
  const WindowLoader windows(text, {.batch = {.batch_size = 4, .batch_size_from_step = {{2, 6}}, .index = 1, .count = 2},
                                    .length = 10,
                                    .order = WindowOrder::shuffled});
  CHECK(windows.load(3).first_sample == 17);
  CHECK(windows.load(3).first_row == 3);
  CHECK(windows.load(3).rows() == 3);
  CHECK(samples_of_steps(windows, 4) == 20);
  CHECK(windows.steps_per_epoch() == 18);  // of 99 windows
}

TEST_CASE("batch sizes from steps on that make no sense are refused") {
  const auto refused = [](BatchOptions batch, const char* part) {
    CHECK_THROWS_WITH(Loader(counting(50), batch), ContainsSubstring(part));
  };
  refused({.batch_size = 8, .batch_size_from_step = {{0, 16}}}, "ascend from 1 on, got step 0 after 0");
  refused({.batch_size = 8, .batch_size_from_step = {{5, 16}, {5, 32}}}, "ascend from 1 on, got step 5 after 5");
  refused({.batch_size = 8, .batch_size_from_step = {{5, 0}}}, "a batch of 0 samples");
  BatchSizes many;
  for (std::size_t step = 1; step <= BatchSizes::most; ++step) many.push_back({static_cast<std::int64_t>(step), 8});
  CHECK_THROWS_WITH(many.push_back({100, 8}), ContainsSubstring("at most 32"));
  refused({.batch_size = 8, .batch_size_from_step = {{5, 9}}, .count = 2},
          "a batch of 9 samples cannot be shared equally by 2");
  refused({.batch_size = 8, .batch_size_from_step = {{5, 12}}, .micro_batch_size = 1, .count = 2},
          "from step 5 on a rank has 6 samples, which its 4 micro-batches cannot share equally; use a batch size that is a "
          "multiple "
          "of 8");
  refused({.batch_size = 8, .batch_size_from_step = {{std::int64_t{1} << 62, 16}}}, "the numbers of its samples overflow");
  for (const LastBatch last : {LastBatch::partial, LastBatch::dropped}) {
    CHECK_THROWS_WITH(Loader(counting(48), {.batch = {.batch_size = 8, .batch_size_from_step = {{5, 16}}}, .last = last}),
                      ContainsSubstring("use LastBatch::filled"));
  }
  const auto text = TokenDataset::from_bytes(std::string(1000, 'x'));
  CHECK_THROWS_WITH(
      WindowLoader(
          text, {.batch = {.batch_size = 4, .batch_size_from_step = {{2, 6}}}, .length = 10, .order = WindowOrder::continued}),
      ContainsSubstring("need one batch size"));

  CHECK(parse_batch_sizes("64@1000,128@5000") == BatchSizes{{1000, 64}, {5000, 128}});
  CHECK(parse_batch_sizes("").empty());
  CHECK(to_text(BatchSizes{{1000, 64}, {5000, 128}}) == "64@1000,128@5000");
  for (const char* wrong : {"64", "64@", "@5", "64@5,,32@6", "64@5,", "64@1e3", "64 @5"}) {
    CHECK_THROWS_WITH(parse_batch_sizes(wrong), ContainsSubstring("is no SIZE@STEP"));
  }
}

TEST_CASE("another seed gives another order, a later step can be asked for first") {
  const auto first_of = [](std::uint64_t seed, std::int64_t step) {
    return Loader(counting(100), {.batch = {.batch_size = 10, .seed = seed}}).load(step).items;
  };
  CHECK(first_of(1, 0) != first_of(2, 0));
  CHECK(first_of(1, 0) != first_of(1, 10));
  const Loader loader(counting(100), BatchOptions{.batch_size = 10});
  const auto late = loader.load(1'000'000'007).items;
  CHECK(late == loader.load(1'000'000'007).items);
  CHECK(loader.load(0).items == first_of(1, 0));
}

TEST_CASE("a batch larger than the dataset goes through several epochs") {
  const auto items = Loader(counting(3), {.batch = {.batch_size = 9}}).load(0).items;
  for (const int epoch : {0, 3, 6}) CHECK(std::set(items.begin() + epoch, items.begin() + epoch + 3).size() == 3);
  CHECK_THROWS_WITH(Loader(counting(3), {.batch = {.batch_size = 9}, .last = LastBatch::dropped}),
                    ContainsSubstring("3 items hold no whole batch of 9") && ContainsSubstring("at most 3"));
  const Loader partial(counting(3), {.batch = {.batch_size = 9}, .last = LastBatch::partial});
  CHECK(partial.steps_per_epoch() == 1);
  CHECK(partial.load(5).items.size() == 3);
  CHECK(partial.load(5).first_sample == 15);
}

TEST_CASE("a last batch that can't be shared is refused with what would work") {
  const auto load = [](int count, const BatchOptions& batch) {
    return Loader(counting(count), {.batch = batch, .last = LastBatch::partial});
  };
  // 150 = 4 * 32 + 22: an odd share for 4 ranks.
  CHECK_THROWS_WITH(load(150, {.batch_size = 32, .count = 4}),
                    ContainsSubstring("the last batch of 150 items has 22") && ContainsSubstring("4 ranks") &&
                        ContainsSubstring("LastBatch::filled") && ContainsSubstring("LastBatch::dropped") &&
                        !ContainsSubstring("a batch size of"));
  CHECK_THROWS_WITH(load(156, {.batch_size = 32, .micro_batch_size = 4, .count = 2}),
                    ContainsSubstring("4 micro-batches each") && ContainsSubstring("use a batch size of 24, "));
  CHECK(load(156, {.batch_size = 24, .micro_batch_size = 4, .count = 2}).load(6, 2).items.size() == 2);
  CHECK_NOTHROW(load(152, {.batch_size = 32, .count = 4}));
}

TEST_CASE("options that make no sense are refused") {
  CHECK_THROWS_WITH(Loader(std::vector<int>()), ContainsSubstring("without items"));
  CHECK_THROWS_WITH(Loader(counting(9), {.batch = {.batch_size = 6, .count = 4}}), ContainsSubstring("multiple of 4"));
  CHECK_THROWS_WITH(Loader(counting(9), BatchOptions{.batch_size = 0}), ContainsSubstring("0 samples"));
  CHECK_THROWS_WITH(Loader(counting(9), {.workers = -1}), ContainsSubstring("-1 workers"));
  const Loader loader(counting(9));
  CHECK(loader.batch_size() == 32);
  CHECK_THROWS_WITH(loader.load(-1), ContainsSubstring("numbered from 0"));
  CHECK_THROWS_WITH(loader.load(std::int64_t{1} << 60), ContainsSubstring("step"));
  CHECK_THROWS_WITH(loader.load(0, 1), ContainsSubstring("micro-batch 1 does not exist"));
  CHECK_THROWS_WITH(samples_of_steps(loader, -1), ContainsSubstring("-1 steps"));
  CHECK_THROWS_WITH(steps_of_samples(loader, -1), ContainsSubstring("-1 samples"));
  for (const std::int64_t batch_size : {std::int64_t{1} << 31, std::numeric_limits<std::int64_t>::max()}) {
    CHECK_THROWS_WITH(Loader(counting(3), BatchOptions{.batch_size = batch_size}), ContainsSubstring("at most 2147483647"));
  }
  CHECK_THROWS_WITH(BatchShare({.batch_size = std::int64_t{1} << 31, .micro_batch_size = 1}),
                    ContainsSubstring("2147483648 micro-batches of 1"));
}

TEST_CASE("a function of the items makes the batch") {
  const auto sum = [](std::span<const int> items, std::int64_t first_sample) {
    return std::pair(std::accumulate(items.begin(), items.end(), 0), first_sample);
  };
  const Loader loader(counting(10), {.batch = {.batch_size = 10}}, sum);
  CHECK(loader.load(3) == std::pair(45, std::int64_t{30}));
  CHECK(Loader(counting(10), BatchOptions{.batch_size = 5}, sum).load(3).second == 15);
}

TEST_CASE("items of any type are read, bool and those that can't be copied too") {
  const Loader flags(std::vector<bool>{true, false, true},
                     {.batch = {.batch_size = 3}, .order = Order::sequential, .workers = 3});
  CHECK(flags.load(0).items == std::vector<bool>{true, false, true});
  struct Boxes {
    std::int64_t size() const { return 4; }
    std::unique_ptr<std::int64_t> at(std::int64_t index) const { return std::make_unique<std::int64_t>(index); }
  };
  const Loader boxes(Boxes(), {.batch = {.batch_size = 4}, .order = Order::sequential});
  CHECK(*boxes.load(1).items[2] == 2);
}

TEST_CASE("workers change neither the order nor what goes wrong") {
  struct Slow {
    std::int64_t size() const { return 64; }
    int at(std::int64_t index) const {
      if (index % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      if (index >= broken) throw std::runtime_error(fmt::format("item {} is broken", index));
      return static_cast<int>(index);
    }
    std::int64_t broken = 64;
  };
  for (const int workers : {0, 1, 2, 7}) {
    const LoaderOptions options{.batch = {.batch_size = 64}, .order = Order::sequential, .workers = workers};
    CHECK(Loader(Slow(), options).load(0).items == counting(64));
    for (int repetition = 0; repetition < 20; ++repetition) {
      CHECK_THROWS_WITH(Loader(Slow{.broken = 9}, options).load(0), ContainsSubstring("item 9 is broken"));
    }
  }
}

TEST_CASE("several workers read at the same time") {
  struct Meeting {
    std::int64_t size() const { return 2; }
    int at(std::int64_t) const {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      ++*here;
      while (*here < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      return *here;
    }
    std::shared_ptr<std::atomic<int>> here = std::make_shared<std::atomic<int>>(0);
  };
  CHECK(Loader(Meeting(), {.batch = {.batch_size = 2}, .workers = 2}).load(0).items == std::vector<int>{2, 2});
}

TEST_CASE("all loaders tell a training loop of their epochs") {
  const auto tokens = TokenDataset::from_bytes(std::string(1001, 'x'));
  const WindowLoader windows(tokens, {.batch = {.batch_size = 8}, .length = 10, .order = WindowOrder::shuffled});
  CHECK(windows.batch_size() == 8);
  CHECK(windows.samples_per_epoch() == 100);
  CHECK(windows.steps_per_epoch() == 13);
  CHECK(windows.tokens_per_sample() == 10);
  CHECK(WindowLoader(tokens, {.batch = {.batch_size = 8}, .length = 10}).samples_per_epoch() == 100);  // in random order
  CHECK(steps_of_samples(windows, 2 * windows.samples_per_epoch()) == 25);
  const ImageDataset images({.height = 1, .width = 1, .channels = 1}, std::vector<std::uint8_t>(10),
                            std::vector<std::int32_t>(10), 1);
  const ImageLoader pictures(images, {.batch = {.batch_size = 4}});
  CHECK(pictures.batch_size() == 4);
  CHECK(pictures.samples_per_epoch() == 10);
  CHECK(samples_of_steps(pictures, 3) == 12);
  const NoiseLoader noise({.batch_size = 6, .micro_batch_size = 1, .index = 1, .count = 2});
  CHECK(noise.load(2, 1).x.span()[0] == NoiseLoader({.batch_size = 6}).load(2).x.data()[8 * 4]);
}
