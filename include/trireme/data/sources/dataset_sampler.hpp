#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/sources/batch_options.hpp"
#include "trireme/data/sources/batch_share.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

enum class Order : std::uint8_t {
  shuffled,    // each item once per epoch, in a new random order every epoch
  sequential,  // in the dataset's order in every epoch
};

// What happens to the items that remain after the last full batch of an epoch.
enum class LastBatch : std::uint8_t {
  filled,   // fills the batch up with the first items of the next epoch
  dropped,  // leaves them out in this epoch
  partial,  // makes a smaller batch, which ranks must be able to share equally, in the usual number of micro-batches
};

// How often samples come from each part of a joined dataset, from step `from_step` on: one weight for each part, in any unit.
struct MixtureWeights {
  std::int64_t from_step = 0;
  std::vector<double> weights = {};
};

struct LoaderOptions {
  BatchOptions batch = {};
  Order order = Order::shuffled;
  LastBatch last = LastBatch::filled;
  int workers = 1;  // threads that call the dataset's at() concurrently; 0: all threads of this rank
  // For a dataset that joins several datasets (Joined): samples come from its parts in proportion to these weights, and a part
  // that is used up begins its next epoch. The steps must ascend from 0. Empty: each item once per epoch.
  //   {.mixture = {{0, {0.7, 0.3}}, {10'000, {0.5, 0.5}}}}
  std::vector<MixtureWeights> mixture = {};
  // Shuffled items are read in blocks of this many neighbours. The items of `blocks_at_once` blocks are shuffled together, so
  // that files are read mostly in order. 0: the dataset's neighbours(); 1: any item may follow any other.
  std::int64_t block = 0;
  std::int64_t blocks_at_once = 16;
};

// The size of a dataset without an end.
inline constexpr std::int64_t endless = std::numeric_limits<std::int64_t>::max();

// A dataset, or one part of a joined dataset, as a sampler sees it.
struct DatasetPart {
  std::int64_t size = 0;        // or `endless`
  std::int64_t neighbours = 1;  // items that are fastest to read as one block
};

template <typename D>
std::vector<DatasetPart> parts_of(const D& dataset) {
  if constexpr (requires { dataset.parts(); }) {
    return dataset.parts();
  } else if constexpr (!requires { dataset.size(); }) {
    return {{endless, 1}};
  } else if constexpr (requires { dataset.neighbours(); }) {
    return {{static_cast<std::int64_t>(dataset.size()), dataset.neighbours()}};
  } else {
    return {{static_cast<std::int64_t>(dataset.size()), 1}};
  }
}

// The options of a loader whose dataset has micro-batches as its items: one of them in each micro-batch. Throws Error if the
// options say otherwise.
LoaderOptions options_for_micro_batches(LoaderOptions options);

class ItemOrder;

// The items of a micro-batch, and the number of its first sample. Samples are numbered over all epochs and ranks, without
// dropped items.
struct SampledItems {
  std::vector<std::int64_t> indices;
  std::int64_t first_sample = 0;
};

// Chooses the items of a dataset that are this rank's samples of a step. The choice depends on the seed, the epoch and the
// place in the epoch, but not on the number of ranks and micro-batches.
class DatasetSampler {
 public:
  // Throws Error for an empty dataset, if ranks or micro-batches can't share the batch or the last batch equally, and for
  // batches of several sizes without LastBatch::filled. An endless dataset has no last batch, no parts and no blocks.
  DatasetSampler(std::int64_t dataset_size, const LoaderOptions& options);
  // For joined datasets. Also throws Error in these cases:
  // - The steps do not ascend from 0.
  // - There is not one weight for each part, or all weights are 0.
  // - A weight is negative, is for an empty part, or is so small that the part would never come.
  DatasetSampler(std::span<const DatasetPart> parts, const LoaderOptions& options);

  std::int64_t num_micro_batches() const { return share_.num_micro_batches(); }
  std::int64_t batch_size() const { return share_.batch_size(); }
  std::int64_t samples_per_epoch() const;  // without dropped items; 0: endless
  std::int64_t steps_per_epoch() const;    // of the first epoch, rounded up
  std::int64_t samples_of_steps(std::int64_t steps) const;

  // Throws Error for a step or micro-batch that does not exist.
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
  BatchShare rest_;  // the shares of a smaller last batch; if there is none, share_
  LastBatch last_;
  std::shared_ptr<const ItemOrder> order_;
};

}  // namespace data
}  // namespace trireme
