#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/core/stopwatch.hpp"
#include "trireme/data/loaders/prefetching.hpp"

namespace trireme::data::detail {
namespace {

struct Place {
  std::int64_t step = 0;
  std::int64_t micro_batch = 0;

  bool operator==(const Place&) const = default;
};

struct Slot {
  Place place;
  bool is_begun = false;
  bool is_ready = false;
  PrefetchQueue::Loaded loaded = {};
  std::exception_ptr failure = nullptr;
};

}  // namespace

struct PrefetchQueue::Impl {
  Impl(const PrefetchOptions& options, std::int64_t num_micro_batches, Load load)
      : options_(options), num_micro_batches_(num_micro_batches), load_(std::move(load)) {
    require(options.threads >= 0, "batches cannot be prefetched by {} threads", options.threads);
    require(options.batches > 0, "at least one batch is prefetched, got {}", options.batches);
    require(options.bytes >= 0, "batches cannot take {} bytes", options.bytes);
  }

  ~Impl() {
    {
      const std::scoped_lock lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Place after(Place place) const {
    if (++place.micro_batch < num_micro_batches_) return place;
    return {place.step + 1, 0};
  }

  // Slots are shared with the thread that fills them: after a jump it fills one that nobody wants.
  using Slots = std::deque<std::shared_ptr<Slot>>;

  // The first one that no thread has begun, where there is room for it. Before the first batch is there nobody knows how large
  // they are: with a bound one is loaded at a time until then.
  std::shared_ptr<Slot> next_to_load() const {
    std::int64_t bytes = 0;
    bool is_loading = false;
    for (const auto& slot : slots_) {
      if (!slot->is_begun) {
        const bool has_room = last_bytes_ ? bytes + *last_bytes_ <= options_.bytes : !is_loading;
        return options_.bytes == 0 || has_room ? slot : nullptr;
      }
      is_loading |= !slot->is_ready;
      bytes += slot->is_ready ? slot->loaded.bytes : last_bytes_.value_or(0);
    }
    return nullptr;
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (!stops_) {
      const std::shared_ptr<Slot> slot = next_to_load();
      if (slot == nullptr) {
        changed_.wait(lock);
        continue;
      }
      load(*slot, lock);
    }
  }

  // Loads into a slot, which only the caller fills.
  void load(Slot& slot, std::unique_lock<std::mutex>& lock) {
    slot.is_begun = true;
    lock.unlock();
    const Stopwatch spent;
    Loaded loaded;
    std::exception_ptr failure;
    try {
      loaded = load_(slot.place.step, slot.place.micro_batch);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    report_.loading_seconds += spent.seconds();
    if (failure == nullptr) last_bytes_ = loaded.bytes;
    slot.loaded = std::move(loaded);
    slot.failure = failure;
    slot.is_ready = true;
    std::int64_t ready = 0;
    for (const auto& other : slots_) ready += other->loaded.bytes;
    report_.most_bytes = std::max(report_.most_bytes, ready);
    changed_.notify_all();
  }

  std::shared_ptr<void> take(Place place) {
    std::unique_lock lock(mutex_);
    while (!slots_.empty() && slots_.front()->place != place) slots_.pop_front();
    report_.ready_batches = std::ranges::count_if(slots_, [](const auto& slot) { return slot->is_ready; });
    report_.ready_bytes = 0;
    for (const auto& slot : slots_) report_.ready_bytes += slot->loaded.bytes;
    std::shared_ptr<Slot> wanted;
    if (slots_.empty()) {
      wanted = std::make_shared<Slot>(Slot{.place = place});
    } else {
      wanted = slots_.front();
      slots_.pop_front();
    }
    last_taken_ = place;
    while (options_.threads > 0 && std::ssize(slots_) < options_.batches) {
      const Place next = after(slots_.empty() ? last_taken_ : slots_.back()->place);
      slots_.push_back(std::make_shared<Slot>(Slot{.place = next}));
    }
    while (std::ssize(threads_) < options_.threads) threads_.emplace_back([this] { work(); });
    changed_.notify_all();
    ++report_.batches;
    const Stopwatch waited;
    if (wanted->is_begun) {
      changed_.wait(lock, [&] { return wanted->is_ready; });
    } else {
      ++report_.not_ahead;
      load(*wanted, lock);
    }
    report_.waiting_seconds += waited.seconds();
    if (wanted->failure) std::rethrow_exception(wanted->failure);
    return std::move(wanted->loaded.batch);
  }

  const PrefetchOptions options_;
  const std::int64_t num_micro_batches_;
  const Load load_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
  Slots slots_;  // the next micro-batches, in order
  Place last_taken_;
  std::optional<std::int64_t> last_bytes_;
  bool stops_ = false;
  LoaderReport report_;
};

PrefetchQueue::PrefetchQueue(const PrefetchOptions& options, std::int64_t num_micro_batches, Load load)
    : impl_(std::make_unique<Impl>(options, num_micro_batches, std::move(load))) {}

PrefetchQueue::~PrefetchQueue() = default;

std::shared_ptr<void> PrefetchQueue::take(std::int64_t step, std::int64_t micro_batch) {
  return impl_->take({step, micro_batch});
}

LoaderReport PrefetchQueue::report() const {
  const std::scoped_lock lock(impl_->mutex_);
  return impl_->report_;
}

}  // namespace trireme::data::detail
