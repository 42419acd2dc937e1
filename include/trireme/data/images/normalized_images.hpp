#pragma once

#include <cstdint>
#include <span>

#include "trireme/core/export.hpp"
#include "trireme/data/images/image_batch.hpp"
#include "trireme/data/images/image_dataset.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// A dataset of normalized images without augmentation, for evaluation_batches:
//
//   const auto normalization = data::normalization_of(training);
//   data::evaluation_batches(data::NormalizedImages(test, normalization), {.batch_size = 64})
class NormalizedImages {
 public:
  // Throws Error for a normalization without a mean and a std above 0 for each channel. An empty normalization leaves values
  // in [0, 1].
  explicit NormalizedImages(ImageDataset images, Normalization normalization = {});

  std::int64_t size() const { return images_.count(); }
  ImageBatch collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const;

 private:
  ImageDataset images_;
  Normalization normalization_;
};

}  // namespace data
}  // namespace trireme
