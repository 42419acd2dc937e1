#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/data/images/image_batch.hpp"
#include "trireme/data/images/read_image_pairs.hpp"
#include "trireme/data/sources/on_device.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Images and the class of each of their pixels, on the host as loaders give them (MaskedBatch), or on a GPU.
template <typename D>
struct BasicMaskedBatch {
  Tensor<float, D> images;         // [batch, height, width, channels]
  Tensor<std::int32_t, D> labels;  // [batch, height, width]; no_label where a pixel does not count
  std::int64_t first_sample = 0;   // the number of the first row's sample

  std::int64_t size() const { return images.dim(0); }
};
using MaskedBatch = BasicMaskedBatch<Cpu>;

template <typename D>
BasicMaskedBatch<D> on_device(const MaskedBatch& loaded) {
  return {.images = on_device<D>(loaded.images), .labels = on_device<D>(loaded.labels), .first_sample = loaded.first_sample};
}

struct MaskedImagesOptions {
  Normalization normalization = {};  // of images
  std::optional<int> ignored = {};   // the number of a mask's pixels that don't count, as 255; they become no_label
};

// Pairs as a dataset for Loader and evaluation_batches, without augmentation. Logits [batch, height, width, classes] and labels
// are what cross_entropy and ConfusionMatrix take.
class MaskedImages {
 public:
  // Throws Error where images and masks are not of the same number and extents, and for a normalization that does not fit.
  explicit MaskedImages(ImagePairs pairs, MaskedImagesOptions options = {});

  std::int64_t size() const { return pairs_.images.count(); }
  const ImagePairs& pairs() const { return pairs_; }
  MaskedBatch collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const;

 private:
  ImagePairs pairs_;
  MaskedImagesOptions options_;
};

inline std::string content_of(const MaskedImages& images) { return content_of(images.pairs()); }

}  // namespace data
}  // namespace trireme
