#include "trireme/data/loaders/prefetching.hpp"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

struct Numbered {
  std::int64_t number = 0;
  std::int64_t bytes = 0;
};
std::int64_t bytes_of(const Numbered& batch) { return batch.bytes; }

// Three micro-batches a step, which are numbered; those of step 1000 can't be read.
struct Counting {
  std::int64_t num_micro_batches() const { return 3; }
  std::int64_t batch_size() const { return 6; }
  std::int64_t samples_per_epoch() const { return 600; }
  Numbered load(std::int64_t step, std::int64_t micro_batch = 0) const {
    if (step == 1000) throw std::runtime_error("no step 1000");
    const int now = ++*running;
    for (int most = *most_running; now > most && !most_running->compare_exchange_weak(most, now);) {
    }
    ++*loads;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --*running;
    return {.number = step * 3 + micro_batch, .bytes = 10};
  }
  std::shared_ptr<std::atomic<int>> running = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::atomic<int>> most_running = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::atomic<int>> loads = std::make_shared<std::atomic<int>>(0);
};

}  // namespace

TEST_CASE("batches that are prefetched come in order, also after jumps") {
  for (const int threads : {0, 1, 3}) {
    const Prefetching loader(Counting(), {.threads = threads, .batches = 4});
    for (const std::int64_t first : {0, 1, 50, 49, 7}) {
      for (std::int64_t number = first * 3; number < first * 3 + 7; ++number)
        REQUIRE(loader.load(number / 3, number % 3).number == number);
    }
    REQUIRE(loader.load(2, 2).number == 8);
    REQUIRE(loader.load(2, 2).number == 8);
    REQUIRE(loader.load(2, 0).number == 6);
    CHECK(loader.report().batches == 38);
    CHECK(loader.report().not_ahead >= 1);
    CHECK((loader.report().loading_seconds > 0.038 && loader.report().waiting_seconds > 0));
  }
}

TEST_CASE("no more batches are prefetched than the bounds allow") {
  const Counting counting;
  const Prefetching few(counting, {.threads = 8, .batches = 2});
  for (std::int64_t step = 0; step < 5; ++step) few.load(step, 0), few.load(step, 1), few.load(step, 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK(*counting.loads == 17);  // the last one and two ahead
  few.load(5, 0);
  CHECK(few.report().ready_batches == 2);
  CHECK(few.report().ready_bytes == 20);
  CHECK(*counting.most_running <= 3);

  const Counting bounded;
  const Prefetching bytes(bounded, {.threads = 8, .batches = 100, .bytes = 35});
  for (std::int64_t step = 0; step < 5; ++step) bytes.load(step, 0), bytes.load(step, 1), bytes.load(step, 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(bytes.report().most_bytes <= 35);
}

TEST_CASE("what a loader throws is thrown for its batch alone") {
  const Prefetching loader(Counting(), {.threads = 2, .batches = 5});
  CHECK(loader.load(999, 1).number == 2998);
  CHECK(loader.load(999, 2).number == 2999);
  CHECK_THROWS_AS(loader.load(1000, 0), std::runtime_error);
  CHECK_THROWS_AS(loader.load(1000, 1), std::runtime_error);
  CHECK(loader.load(1001, 0).number == 3003);
}

TEST_CASE("options of prefetching are checked") {
  CHECK_THROWS_AS(Prefetching(Counting(), {.threads = -1}), Error);
  CHECK_THROWS_AS(Prefetching(Counting(), {.batches = 0}), Error);
  CHECK_THROWS_AS(Prefetching(Counting(), {.bytes = -1}), Error);
}
