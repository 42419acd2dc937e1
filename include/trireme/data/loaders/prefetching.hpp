#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/data/loaders/batch_loader.hpp"
#include "trireme/data/loaders/loader_report.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct PrefetchOptions {
  int threads = 1;           // each loads whole micro-batches; 0: nothing is prefetched
  std::int64_t batches = 2;  // the most micro-batches that all threads together prefetch
  std::int64_t bytes = 0;    // the most bytes prefetched; a micro-batch larger than the one before may exceed it; 0: no bound
};

namespace detail {

// Loads micro-batches in the order of steps on threads of its own, and hands them out in that order.
class PrefetchQueue {
 public:
  struct Loaded {
    std::shared_ptr<void> batch;
    std::int64_t bytes = 0;
  };
  using Load = std::function<Loaded(std::int64_t step, std::int64_t micro_batch)>;

  PrefetchQueue(const PrefetchOptions& options, std::int64_t num_micro_batches, Load load);
  ~PrefetchQueue();  // waits for micro-batches that are being loaded
  PrefetchQueue(const PrefetchQueue&) = delete;
  PrefetchQueue& operator=(const PrefetchQueue&) = delete;

  std::shared_ptr<void> take(std::int64_t step, std::int64_t micro_batch);
  LoaderReport report() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detail

// A loader that prefetches: while a step computes, threads load the micro-batches of the next steps. It returns the same
// batches as the loader itself, for calls in any order. If the loader's load() throws, the exception is rethrown when that
// batch is requested.
//
//   const data::Prefetching loader(data::Loader(rows, {.batch = run.batch()}), {.threads = 2, .batches = 8});
//   for (auto& step : run.steps(loader)) ...
//
// Reading ahead helps if cores are free, and batches are decoded or come over a network. The loader's load() is called from
// several threads at the same time. A bound in bytes needs batches with a function bytes_of(batch), which the library's
// batches have.
template <BatchLoader L>
class Prefetching {
 public:
  using Batch = decltype(std::declval<const L&>().load(std::int64_t{}, std::int64_t{}));

  // Throws Error for threads below 0, batches below 1, bytes below 0, and for a bound in bytes if the batches have no
  // bytes_of().
  explicit Prefetching(L loader, const PrefetchOptions& options = {}) : loader_(std::make_shared<const L>(std::move(loader))) {
    constexpr bool tells_bytes = requires(const Batch& batch) { bytes_of(batch); };
    require(options.bytes == 0 || tells_bytes, "a bound of {} bytes for batches that have no function bytes_of(batch)",
            options.bytes);
    ahead_ = std::make_shared<detail::PrefetchQueue>(options, loader_->num_micro_batches(),
                                                     [loader = loader_](std::int64_t step, std::int64_t micro_batch) {
                                                       auto batch = std::make_shared<Batch>(loader->load(step, micro_batch));
                                                       std::int64_t bytes = 0;
                                                       if constexpr (tells_bytes) bytes = bytes_of(*batch);
                                                       return detail::PrefetchQueue::Loaded{std::move(batch), bytes};
                                                     });
  }

  std::int64_t num_micro_batches() const { return loader_->num_micro_batches(); }
  std::int64_t batch_size() const { return loader_->batch_size(); }
  std::int64_t samples_per_epoch() const { return loader_->samples_per_epoch(); }
  std::int64_t samples_of_steps(std::int64_t steps) const { return data::samples_of_steps(*loader_, steps); }
  std::int64_t tokens_per_sample() const requires requires(const L& loader) { loader.tokens_per_sample(); }
  { return loader_->tokens_per_sample(); }
  bool has(std::int64_t step) const requires requires(const L& loader) { loader.has(step); }
  { return loader_->has(step); }
  std::string content() const requires requires(const L& loader) { loader.content(); }
  { return loader_->content(); }

  Batch load(std::int64_t step, std::int64_t micro_batch = 0) const {
    return std::move(*std::static_pointer_cast<Batch>(ahead_->take(step, micro_batch)));
  }

  const L& loader() const { return *loader_; }
  // How far the threads are ahead, and what the loader itself reports.
  LoaderReport report() const {
    LoaderReport report = ahead_->report();
    if constexpr (ReportingLoader<L>) {
      const LoaderReport own = loader_->report();
      report.reading_seconds = own.reading_seconds;
      report.decoding_seconds = own.decoding_seconds;
      report.augmenting_seconds = own.augmenting_seconds;
      report.num_bad_samples = own.num_bad_samples;
    }
    return report;
  }

 private:
  std::shared_ptr<const L> loader_;
  std::shared_ptr<detail::PrefetchQueue> ahead_;
};

}  // namespace data
}  // namespace trireme
