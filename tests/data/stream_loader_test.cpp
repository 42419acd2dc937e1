#include "trireme/data/loaders/stream_loader.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/data/loaders/batch_loader.hpp"
#include "trireme/data/loaders/loader.hpp"
#include "trireme/data/loaders/prefetching.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

// How often streams were used.
struct StreamUses {
  std::atomic<int> opened = 0;
  std::atomic<int> read = 0;
};

// Numbers: 1'000'000 * index + 10'000 * epoch + place. Can't be copied.
struct NumberStream {
  std::optional<int> next() {
    if (place == end) return std::nullopt;
    if (uses) ++uses->read;
    if (place == *failing) throw std::runtime_error("no item " + std::to_string(place));
    return first + place++;
  }

  int first = 0;
  int end = 0;
  std::shared_ptr<StreamUses> uses = nullptr;
  std::shared_ptr<std::atomic<int>> failing = std::make_shared<std::atomic<int>>(-1);
  int place = 0;
  std::unique_ptr<int> only = nullptr;
};

struct SkippingStream : NumberStream {
  std::int64_t skip(std::int64_t count) {
    const auto done = std::min<std::int64_t>(count, end - place);
    place += static_cast<int>(done);
    return done;
  }
};

// Opens streams of these lengths, one for each shard.
template <typename S>
struct OpenNumbers {
  S operator()(const StreamPart& part) const {
    ++uses->opened;
    S stream;
    stream.first = 1'000'000 * part.index + 10'000 * static_cast<int>(part.epoch);
    stream.end = lengths[static_cast<std::size_t>(part.index)];
    stream.uses = uses;
    stream.failing = failing;
    return stream;
  }
  std::vector<int> lengths;
  std::shared_ptr<StreamUses> uses = std::make_shared<StreamUses>();
  std::shared_ptr<std::atomic<int>> failing = std::make_shared<std::atomic<int>>(-1);
};

NumberStream numbers(int count) {
  NumberStream stream;
  stream.end = count;
  return stream;
}

// The items of steps [begin, end) of all ranks.
template <typename S>
std::vector<int> read_steps(const OpenNumbers<S>& open, StreamOptions options, int ranks, std::int64_t begin,
                            std::int64_t end) {
  std::vector<int> items(static_cast<std::size_t>((end - begin) * options.batch.batch_size), -1);
  options.batch.count = ranks;
  options.batch.uneven = true;
  for (options.batch.index = 0; options.batch.index < ranks; ++options.batch.index) {
    const StreamLoader loader(open, options);
    for (std::int64_t step = begin; step < end; ++step) {
      for (std::int64_t micro_batch = 0; micro_batch < loader.num_micro_batches(); ++micro_batch) {
        const ItemBatch<int> batch = loader.load(step, micro_batch);
        auto at = static_cast<std::size_t>(batch.first_sample - begin * options.batch.batch_size);
        for (const int item : batch.items) items.at(at++) = item;
      }
    }
  }
  return items;
}

std::vector<int> part_of(const std::vector<int>& items, std::int64_t begin, std::int64_t end) {
  return {items.begin() + begin, items.begin() + end};
}

static_assert(BatchLoader<StreamLoader<NumberStream>>);
static_assert(BatchLoader<StreamLoader<OpenNumbers<NumberStream>>>);
static_assert(StreamSource<OpenNumbers<NumberStream>> && !ItemStream<OpenNumbers<NumberStream>>);
static_assert(!StreamSource<std::vector<int>> && !StreamSource<int (*)(const StreamPart&)>);

}  // namespace

TEST_CASE("the samples of each step of streams do not depend on the ranks") {
  const OpenNumbers<NumberStream> walked{.lengths = {31, 40, 25, 12}};
  const OpenNumbers<SkippingStream> skipped{.lengths = {31, 40, 25, 12}};
  for (const LastBatch last : {LastBatch::filled, LastBatch::dropped}) {
    for (const int shards : {1, 2, 4}) {
      CAPTURE(static_cast<int>(last), shards);
      const StreamOptions options{.batch = {.batch_size = 12}, .last = last, .shards = shards};
      const std::vector<int> alone = read_steps(walked, options, 1, 0, 20);
      if (shards == 1) {  // 31 items an epoch, of which 24 are two whole steps
        CHECK(part_of(alone, 0, 3) == std::vector<int>{0, 1, 2});
        CHECK(alone[24] == (last == LastBatch::filled ? 24 : 10'000));
        CHECK(alone[31] == (last == LastBatch::filled ? 10'000 : 10'007));
      }
      if (shards == 4) CHECK(part_of(alone, 0, 6) == std::vector<int>{0, 1, 2, 1'000'000, 1'000'001, 1'000'002});
      for (const int ranks : {1, 2, 3, 5}) {
        CAPTURE(ranks);
        StreamOptions divided = options;
        if (12 % ranks == 0) divided.batch.micro_batch_size = 2;
        CHECK(read_steps(walked, divided, ranks, 0, 20) == alone);
        for (const std::int64_t first : {1, 7, 19}) {  // a resumed run
          CHECK(read_steps(walked, divided, ranks, first, 20) == part_of(alone, 12 * first, 12 * 20));
          divided.kept_steps = 0;
          CHECK(read_steps(skipped, divided, ranks, first, 20) == part_of(alone, 12 * first, 12 * 20));
        }
      }
    }
  }
}

TEST_CASE("a rank opens the streams of its own samples alone, and skips what it can") {
  const OpenNumbers<SkippingStream> open{.lengths = std::vector<int>(4, 1'000'000)};
  const StreamOptions options{.batch = {.batch_size = 16, .index = 1, .count = 2}, .shards = 4, .kept_steps = 0};
  const StreamLoader loader(open, options);
  CHECK(loader.load(100'000).items == std::vector<int>{2'400'000, 2'400'001, 2'400'002, 2'400'003, 3'400'000, 3'400'001,  //
                                                       3'400'002, 3'400'003});
  CHECK(open.uses->opened == 2);
  CHECK(open.uses->read == 8);
}

TEST_CASE("a stream is opened again to go back, and one that can't be refuses to") {
  const OpenNumbers<NumberStream> open{.lengths = {100}};
  const StreamLoader loader(open, {.batch = {.batch_size = 4, .micro_batch_size = 2}});
  CHECK(loader.load(0, 1).items == std::vector<int>{2, 3});
  CHECK(loader.load(0, 0).items == std::vector<int>{0, 1});
  CHECK(loader.load(3, 0).items == std::vector<int>{12, 13});
  CHECK(loader.load(1, 0).items == std::vector<int>{4, 5});
  CHECK(open.uses->opened == 1);
  CHECK(loader.load(0, 0).items == std::vector<int>{0, 1});
  CHECK(open.uses->opened == 2);
  CHECK(loader.load(3, 1).items == std::vector<int>{14, 15});

  const StreamLoader once(numbers(100), {.batch = {.batch_size = 4}, .first_step = 10});
  CHECK(once.load(10).items == std::vector<int>{0, 1, 2, 3});
  CHECK(once.load(12).items == std::vector<int>{8, 9, 10, 11});
  CHECK(once.load(11).items == std::vector<int>{4, 5, 6, 7});
  CHECK_THROWS_WITH(once.load(11),
                    ContainsSubstring("step 11 was read before") && ContainsSubstring("a function that opens it"));
  CHECK_THROWS_WITH(once.load(9), ContainsSubstring("step 9 is before the first one of the streams, 10"));
  CHECK(once.load(13).items == std::vector<int>{12, 13, 14, 15});
}

TEST_CASE("data end with the last whole step") {
  const StreamLoader once(numbers(11), {.batch = {.batch_size = 4}, .epochs = 1});
  CHECK((once.has(0) && once.has(1) && !once.has(2) && once.has(1)));
  CHECK(once.load(0).items == std::vector<int>{0, 1, 2, 3});
  CHECK_THROWS_WITH(once.load(2), ContainsSubstring("step 2 does not exist") && ContainsSubstring("less than 4 samples"));
  CHECK(once.load(1).items == std::vector<int>{4, 5, 6, 7});

  for (const LastBatch last : {LastBatch::filled, LastBatch::dropped}) {  // three epochs of 11
    const StreamLoader loader(OpenNumbers<NumberStream>{.lengths = {11}},
                              {.batch = {.batch_size = 4}, .epochs = 3, .last = last});
    const std::int64_t steps = last == LastBatch::filled ? 8 : 6;
    CHECK((loader.has(steps - 1) && !loader.has(steps) && !loader.has(1'000)));
    CHECK(loader.load(steps - 1).items.front() == (last == LastBatch::filled ? 20'006 : 20'004));
  }

  // The shorter of two streams ends them.
  const StreamOptions two{.batch = {.batch_size = 4}, .epochs = 1, .shards = 2};
  const StreamLoader shards(OpenNumbers<NumberStream>{.lengths = {9, 5}}, two);
  CHECK((shards.has(1) && !shards.has(2)));
  CHECK_THROWS_AS(shards.has(std::numeric_limits<std::int64_t>::max()), Error);

  const StreamLoader endless(OpenNumbers<NumberStream>{.lengths = {3}}, {.batch = {.batch_size = 8}});
  CHECK(endless.has(1'000'000));
  CHECK(endless.load(0).items == std::vector<int>{0, 1, 2, 10'000, 10'001, 10'002, 20'000, 20'001});
  const StreamLoader without_end(numbers(5), {.batch = {.batch_size = 4}});
  CHECK(without_end.load(0).items.size() == 4);
  CHECK_THROWS_WITH(without_end.load(1), ContainsSubstring("has ended after 5 items") && ContainsSubstring("epochs to 1"));
  CHECK_THROWS_WITH(without_end.load(1), ContainsSubstring("has ended after 5 items"));
}

TEST_CASE("streams without enough items are refused") {
  for (const std::int64_t epochs : {0, 1, 2}) {
    const StreamLoader empty(OpenNumbers<NumberStream>{.lengths = {0}}, {.batch = {.batch_size = 4}, .epochs = epochs});
    CHECK(empty.has(0));
    CHECK_THROWS_WITH(empty.load(0), ContainsSubstring("the stream has no items in epoch 0"));
  }
  const StreamLoader small(OpenNumbers<NumberStream>{.lengths = {8, 1}},
                           {.batch = {.batch_size = 4}, .last = LastBatch::dropped, .shards = 2});
  CHECK_THROWS_WITH(small.load(0), ContainsSubstring("stream 1 of 2 has 1 items") && ContainsSubstring("a step takes 2"));
  const StreamLoader shorter(numbers(3), {.batch = {.batch_size = 4}, .epochs = 1});
  CHECK(!shorter.has(0));
  CHECK_THROWS_WITH(shorter.load(0), ContainsSubstring("step 0 does not exist"));
}

TEST_CASE("what next() throws is thrown for its step, and a stream that opens is tried again") {
  const OpenNumbers<NumberStream> open{.lengths = {100}};
  const StreamOptions options{.batch = {.batch_size = 4}, .epochs = 1};
  const StreamLoader loader(open, options);
  *open.failing = 9;
  CHECK((loader.has(1) && loader.has(2)));
  CHECK(loader.load(0).items == std::vector<int>{0, 1, 2, 3});
  CHECK(loader.load(1).items == std::vector<int>{4, 5, 6, 7});
  CHECK_THROWS_WITH(loader.load(2), ContainsSubstring("no item 9"));
  CHECK_THROWS_WITH(loader.load(2), ContainsSubstring("no item 9"));
  *open.failing = -1;
  CHECK(loader.load(2).items == std::vector<int>{8, 9, 10, 11});

  NumberStream broken = numbers(100);
  *broken.failing = 9;
  const auto failing = broken.failing;
  const StreamLoader once(std::move(broken), options);
  CHECK_THROWS_WITH(once.load(3), ContainsSubstring("no item 9"));
  *failing = -1;
  CHECK_THROWS_WITH(once.load(2), ContainsSubstring("no item 9"));
  CHECK_THROWS_WITH(once.load(4), ContainsSubstring("no item 9"));
  CHECK(once.load(1).items == std::vector<int>{4, 5, 6, 7});
}

TEST_CASE("streams are read ahead by several threads") {
  for (const int shards : {1, 3}) {
    for (const bool slow : {false, true}) {
      const OpenNumbers<NumberStream> open{.lengths = {101, 50, 77}};
      const StreamOptions options{
          .batch = {.batch_size = 6, .micro_batch_size = 2}, .epochs = 3, .shards = shards, .workers = shards};
      const auto collate = [slow](std::vector<int> items, std::int64_t first_sample) {
        if (slow && first_sample % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return ItemBatch<int>{.items = std::move(items), .first_sample = first_sample};
      };
      const StreamLoader plain(open, options);
      const Prefetching loader(StreamLoader(open, options, collate), {.threads = 4, .batches = 12});
      std::int64_t step = 0;
      for (; loader.has(step); ++step) {
        REQUIRE(plain.has(step));
        for (std::int64_t micro_batch = 0; micro_batch < 3; ++micro_batch)
          REQUIRE(loader.load(step, micro_batch).items == plain.load(step, micro_batch).items);
      }
      CHECK(!plain.has(step));
      CHECK(step == (shards == 1 ? 50 : 75));
      CHECK(open.uses->opened == (shards == 1 ? 6 : 14));
      CHECK_THROWS_AS(loader.load(step), Error);
    }
  }
}

TEST_CASE("options of streams are checked") {
  const OpenNumbers<NumberStream> open{.lengths = {9}};
  const auto error_of = [&](const StreamOptions& options) {
    try {
      StreamLoader(open, options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(error_of({.shards = 5}), ContainsSubstring("32 samples cannot be shared equally by 5 streams"));
  CHECK_THAT(error_of({.shards = 0}), ContainsSubstring("by 0 streams"));
  CHECK_THAT(error_of({.epochs = -1}), ContainsSubstring("-1 times"));
  CHECK_THAT(error_of({.last = LastBatch::partial}), ContainsSubstring("LastBatch::filled"));
  CHECK_THAT(error_of({.batch = {.batch_size = 32, .batch_size_from_step = {{5, 64}}}}),
             ContainsSubstring("leave batch_size_from_step out"));
  CHECK_THAT(error_of({.first_step = -1}), ContainsSubstring("-1"));
  CHECK_THAT(error_of({.kept_steps = -1}), ContainsSubstring("-1 steps"));
  CHECK_THAT(error_of({.workers = -1}), ContainsSubstring("-1 workers"));
  CHECK_THROWS_WITH(StreamLoader(numbers(9), {.epochs = 2}), ContainsSubstring("a function that opens them"));
  CHECK_THROWS_WITH(StreamLoader(numbers(9), {.shards = 2}), ContainsSubstring("a function that opens them"));
}

namespace {

// The examples of docs/own_batches.md.
struct Swing {
  float angle;
  float speed;
};

struct Swings {  // endless: there is no size()
  Swing at(std::int64_t index) const {
    const auto draw = [&](std::uint64_t which) {
      return static_cast<float>(philox_uniform(seed, which, static_cast<std::uint64_t>(index)));
    };
    return {.angle = 3 * draw(0), .speed = draw(1)};
  }
  std::uint64_t seed = 1;
};

struct Lines {
  std::optional<std::string> next() {
    std::string line;
    return std::getline(*file, line) ? std::optional(line) : std::nullopt;
  }
  std::shared_ptr<std::istream> file;
};

}  // namespace

TEST_CASE("a dataset without a size has no end") {
  static_assert(EndlessDataset<Swings> && !ItemDataset<Swings> && !EndlessDataset<std::vector<int>>);
  std::vector<float> alone;
  for (const int ranks : {1, 2, 3}) {
    std::vector<float> speeds;
    for (int rank = 0; rank < ranks; ++rank) {
      const Loader loader(Swings{}, {.batch_size = 6, .index = rank, .count = ranks});
      CHECK(loader.samples_per_epoch() == 0);
      CHECK(samples_of_steps(loader, 7) == 42);
      const ItemBatch<Swing> batch = loader.load(1'000'000'000'000);
      CHECK(batch.first_sample == 6'000'000'000'000 + std::ssize(speeds));
      for (const Swing& swing : batch.items) speeds.push_back(swing.speed);
    }
    if (ranks == 1) alone = speeds;
    CHECK(speeds == alone);
    CHECK(alone.front() == Swings{}.at(6'000'000'000'000).speed);
  }
  CHECK_THROWS_WITH(Loader(Swings{}, LoaderOptions{.last = LastBatch::dropped}), ContainsSubstring("has no end"));
  CHECK_THROWS_WITH(Loader(Swings{}, LoaderOptions{.mixture = {{0, {1}}}}), ContainsSubstring("has no end"));
  CHECK_THROWS_WITH(Loader(Swings{}, LoaderOptions{.block = 5}), ContainsSubstring("has no end"));
}

TEST_CASE("lines of a pipe are a stream") {
  const auto open = [](const StreamPart& part) {
    return Lines{std::make_shared<std::istringstream>("a\nb\nc\nepoch " + std::to_string(part.epoch))};
  };
  const StreamLoader loader(open, {.batch = {.batch_size = 3}, .epochs = 2});
  CHECK(loader.load(1).items == std::vector<std::string>{"epoch 0", "a", "b"});
  CHECK((loader.has(1) && !loader.has(2)));
}
