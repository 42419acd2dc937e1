#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "trireme/core/export.hpp"
#include "trireme/data/loaders/loader_report.hpp"
#include "trireme/data/sources/dataset.hpp"
#include "trireme/data/sources/dataset_sampler.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Reads this rank's micro-batches of every step from a dataset: a Table, TokenWindows, a std::vector, or a type of your own
// with size() and at(index), or without size() if it has no end (EndlessDataset). The loader has no state: steps can be loaded
// in any order.
//
//   const data::Loader rows(table, {.batch = {.batch_size = 64, .index = world.rank(), .count = world.size()}});
//   const data::Rows batch = rows.load(step);  // x [64 / ranks, features], labels [64 / ranks]
//
// A batch is made by the dataset's collate(indices, first_sample), or by a function that takes the items. Without either the
// batch is an ItemBatch.
//
//   const auto collate = [](std::vector<Wave> items, std::int64_t first_sample) {
//     return WaveBatch{.x = side_by_side(items), .first_sample = first_sample};
//   };
//   const data::Loader waves(files, {.batch = run.batch(), .workers = 4}, collate);
//
// By default one thread reads. With more `workers`, at() is called concurrently and must be thread-safe; the batches are the
// same. load() rethrows exceptions of at().
template <typename Dataset, typename Collate = DefaultCollate>
requires LoadableBy<Dataset, Collate>
class Loader {
 public:
  // Throws Error for an empty dataset, and if ranks or micro-batches can't share the batch or the last batch equally.
  explicit Loader(Dataset dataset, const LoaderOptions& options = {}, Collate collate = {})
      : dataset_(std::move(dataset)),
        sampler_(parts_of(dataset_), has_micro_batches<Dataset> ? options_for_micro_batches(options) : options),
        collate_(std::move(collate)),
        workers_(options.workers) {}
  Loader(Dataset dataset, const BatchOptions& batch, Collate collate = {})
      : Loader(std::move(dataset), LoaderOptions{.batch = batch}, std::move(collate)) {}

  std::int64_t num_micro_batches() const { return sampler_.num_micro_batches(); }  // of a step
  std::int64_t batch_size() const { return sampler_.batch_size(); }                // samples of step 0, over all ranks
  std::int64_t samples_per_epoch() const { return sampler_.samples_per_epoch(); }  // without dropped items; 0: endless
  std::int64_t steps_per_epoch() const requires(!EndlessDataset<Dataset>)          // of the first epoch, rounded up
  {
    return sampler_.steps_per_epoch();
  }
  std::int64_t samples_of_steps(std::int64_t steps) const { return sampler_.samples_of_steps(steps); }

  // For a dataset of token sequences.
  std::int64_t tokens_per_sample() const requires requires(const Dataset& dataset) { dataset.tokens_per_sample(); }
  { return dataset_.tokens_per_sample(); }

  // A text that identifies the data.
  std::string content() const requires requires(const Dataset& dataset) { content_of(dataset); }
  { return content_of(dataset_); }

  LoaderReport report() const requires requires(const Dataset& dataset) { dataset.num_bad_samples(); }
  { return {.num_bad_samples = dataset_.num_bad_samples()}; }

  // Throws Error for a step or micro-batch that does not exist.
  auto load(std::int64_t step, std::int64_t micro_batch = 0) const {
    const SampledItems items = sampler_.items(step, micro_batch);
    return read_batch(dataset_, items.indices, items.first_sample, collate_, workers_);
  }

 private:
  Dataset dataset_;
  DatasetSampler sampler_;
  Collate collate_;
  int workers_;
};

}  // namespace data
}  // namespace trireme
