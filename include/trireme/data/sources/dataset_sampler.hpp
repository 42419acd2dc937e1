#pragma once

#include <cstdint>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/sources/batch_options.hpp"
#include "trireme/data/sources/batch_share.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

enum class Order : std::uint8_t {
  shuffled,    // each item once an epoch, in a new order every epoch
  sequential,  // in the dataset's order, in every epoch
};

// What becomes of the items that are left when an epoch's whole batches are taken.
enum class LastBatch : std::uint8_t {
  filled,   // the batch goes on with the first items of the next epoch: epochs follow each other without a gap
  dropped,  // they are left out in this epoch
  partial,  // they are a smaller batch; only where it divides into equal shares and micro-batches
};

struct LoaderOptions {
  BatchOptions batch = {};
  Order order = Order::shuffled;
  LastBatch last = LastBatch::filled;
  int workers = 1;  // threads that call the dataset's at() at the same time; 0: all of this rank
};

// The items of a micro-batch, and the number of its first sample. Samples are numbered through all epochs and ranks; those that
// are dropped have no number.
struct SampledItems {
  std::vector<std::int64_t> indices;
  std::int64_t first_sample = 0;
};

// Which items of a dataset are this rank's samples of a step: a function of the seed, the epoch and the place in it, the same
// for any number of ranks and micro-batches.
class DatasetSampler {
 public:
  // Throws Error for an empty dataset, shares that do not come out even, and a LastBatch that the sizes don't allow.
  DatasetSampler(std::int64_t dataset_size, const LoaderOptions& options);

  std::int64_t num_micro_batches() const { return share_.num_micro_batches(); }
  std::int64_t batch_size() const { return share_.batch_size(); }
  std::int64_t samples_per_epoch() const;  // without those that are dropped
  std::int64_t steps_per_epoch() const;    // rounded up
  std::int64_t samples_of_steps(std::int64_t steps) const;

  // A step or micro-batch that does not exist throws Error.
  SampledItems items(std::int64_t step, std::int64_t micro_batch) const;

 private:
  struct Place {  // of a micro-batch
    std::int64_t epoch;
    std::int64_t position;  // of its first item, in the epoch's order
    std::int64_t first_sample;
    std::int64_t rows;
  };
  Place place_of(std::int64_t step, std::int64_t micro_batch) const;

  std::int64_t size_;
  BatchShare share_;
  BatchShare rest_;  // of a smaller last batch; otherwise share_
  Order order_;
  LastBatch last_;
  std::uint64_t seed_;
};

}  // namespace data
}  // namespace trireme
