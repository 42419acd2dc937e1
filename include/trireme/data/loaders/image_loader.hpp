#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/data/images/augmentation.hpp"
#include "trireme/data/images/image_batch.hpp"
#include "trireme/data/images/image_dataset.hpp"
#include "trireme/data/loaders/loader_report.hpp"
#include "trireme/data/sources/batch_options.hpp"
#include "trireme/data/sources/batch_share.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

enum class ImageOrder : std::uint8_t {
  shuffled,    // for training: each image once per epoch, in a new order; batches may span two epochs
  sequential,  // for evaluation: each image once, in order; the last batch may have fewer images
};

struct ImageLoaderOptions {
  BatchOptions batch = {};
  ImageOrder order = ImageOrder::shuffled;
  Normalization normalization = {};
  Augmentation augmentation = {};
};

// Reads this rank's micro-batches of every step, on all threads of the rank. The loader has no state: steps can be loaded in
// any order. A sample depends only on the seed and on its number, see BatchShare; with Mixup and CutMix also on the batch size,
// which decides the pairs.
class ImageLoader {
 public:
  // Throws Error for these:
  // - a dataset without images
  // - a batch that ranks or micro-batches can't share equally
  // - batches of several sizes in ImageOrder::sequential
  // - a normalization without a mean and a std above 0 for each channel
  // - an augmentation out of its range
  ImageLoader(ImageDataset dataset, const ImageLoaderOptions& options);

  std::int64_t num_micro_batches() const { return share_.num_micro_batches(); }  // of a step
  std::int64_t batch_size() const { return share_.batch_size(); }                // samples of step 0, over all ranks
  std::int64_t samples_per_epoch() const { return dataset_.count(); }
  // Of the first epoch, rounded up; with ImageOrder::sequential no further steps exist.
  std::int64_t steps_per_epoch() const { return share_.steps_of_samples(samples_per_epoch()); }
  std::int64_t samples_of_steps(std::int64_t steps) const { return share_.samples_of_steps(steps); }
  std::string content() const { return content_of(dataset_); }
  LoaderReport report() const;
  // Throws Error for a step or micro-batch that does not exist.
  ImageBatch load(std::int64_t step, std::int64_t micro_batch = 0) const;

 private:
  std::int64_t image_of(std::int64_t sample) const;
  std::int64_t partner_of(std::int64_t sample, std::int64_t step) const;
  struct Seconds;                                                                       // of stages
  std::int32_t read(std::int64_t sample, std::span<float> into, Seconds& spent) const;  // returns its label

  ImageDataset dataset_;
  ImageLoaderOptions options_;
  BatchShare share_;
  struct Spent;
  std::shared_ptr<Spent> spent_;  // of all threads; copies count together
};

}  // namespace data
}  // namespace trireme
