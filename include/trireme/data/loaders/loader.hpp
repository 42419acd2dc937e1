#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "trireme/core/export.hpp"
#include "trireme/data/sources/dataset.hpp"
#include "trireme/data/sources/dataset_sampler.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Reads this rank's micro-batches of every step from a dataset: a Table, TokenWindows, a std::vector, or a type of your own
// with size() and at(index). It keeps no position: any step can be asked for, in any order.
//
//   const data::Loader rows(table, {.batch = {.batch_size = 64, .index = world.rank(), .count = world.size()}});
//   const data::Rows batch = rows.load(step);  // x [64 / ranks, features], labels [64 / ranks]
//
// Items become a batch by the dataset's own collate(indices, first_sample), or by a function of theirs; without either they are
// an ItemBatch.
//
//   const data::Loader waves(files, {.batch = run.batch(), .workers = 4}, [](std::vector<Wave> items, std::int64_t
//   first_sample) {
//     return WaveBatch{.x = side_by_side(items), .first_sample = first_sample};
//   });
//
// By default one thread reads. With `workers` several call at() at the same time, which it must allow; the batches are the
// same. What at() throws reaches the caller of load().
template <typename Dataset, typename Collate = DefaultCollate>
requires CollatedBy<Dataset, Collate>
class Loader {
 public:
  // The dataset is kept. Throws Error where it is empty, shares or micro-batches do not come out even, or LastBatch does not
  // fit.
  explicit Loader(Dataset dataset, const LoaderOptions& options = {}, Collate collate = {})
      : dataset_(std::move(dataset)),
        sampler_(static_cast<std::int64_t>(dataset_.size()), options),
        collate_(std::move(collate)),
        workers_(options.workers) {}
  Loader(Dataset dataset, const BatchOptions& batch, Collate collate = {})
      : Loader(std::move(dataset), LoaderOptions{.batch = batch}, std::move(collate)) {}

  std::int64_t num_micro_batches() const { return sampler_.num_micro_batches(); }  // of a step
  std::int64_t batch_size() const { return sampler_.batch_size(); }                // samples of a step, all ranks together
  std::int64_t samples_per_epoch() const { return sampler_.samples_per_epoch(); }  // without those that are dropped
  std::int64_t steps_per_epoch() const { return sampler_.steps_per_epoch(); }      // rounded up
  std::int64_t samples_of_steps(std::int64_t steps) const { return sampler_.samples_of_steps(steps); }

  // What it reads, in words that differ where the content does.
  std::string content() const requires requires(const Dataset& dataset) { content_of(dataset); }
  { return content_of(dataset_); }

  // A step or micro-batch that does not exist throws Error.
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
