#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/data/images/augmentation.hpp"
#include "trireme/data/images/image_batch.hpp"
#include "trireme/data/images/image_dataset.hpp"
#include "trireme/data/sources/batch_options.hpp"
#include "trireme/data/sources/batch_share.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

enum class ImageOrder : std::uint8_t {
  shuffled,    // for training: each image once an epoch, in a new order every epoch; epochs follow each other without a gap
  sequential,  // for evaluation: each image once, in its own order; the last batch holds what is left
};

struct ImageLoaderOptions {
  BatchOptions batch = {};
  ImageOrder order = ImageOrder::shuffled;
  Normalization normalization = {};
  Augmentation augmentation = {};
};

// Reads this rank's micro-batches of every step, on all its threads. It keeps no position: any step can be asked for, in any
// order. A sample is a function of the seed and of its number (step * batch_size + row) alone; with Mixup and CutMix, of the
// batch size too, which says whose partner it is.
class ImageLoader {
 public:
  // Throws Error for a data set without images, shares or micro-batches that do not come out even, a normalization without a
  // mean and a std above 0 for each channel, and an augmentation that is out of its range.
  ImageLoader(ImageDataset dataset, const ImageLoaderOptions& options);

  std::int64_t num_micro_batches() const { return share_.num_micro_batches(); }  // of a step
  std::int64_t batch_size() const { return share_.batch_size(); }                // samples of a step, all ranks together
  std::int64_t samples_per_epoch() const { return dataset_.count(); }
  std::int64_t steps_per_epoch() const;  // rounded up; in sequential order there are no more steps
  std::string content() const { return content_of(dataset_); }
  // A step or micro-batch that does not exist throws Error.
  ImageBatch load(std::int64_t step, std::int64_t micro_batch = 0) const;

 private:
  std::int64_t image_of(std::int64_t sample) const;
  std::int64_t partner_of(std::int64_t sample) const;
  std::int32_t read(std::int64_t sample, std::span<float> into) const;  // gives its label

  ImageDataset dataset_;
  ImageLoaderOptions options_;
  BatchShare share_;
};

}  // namespace data
}  // namespace trireme
