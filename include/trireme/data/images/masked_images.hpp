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

// Images with a class for each pixel, for segmentation: on the host, as loaders return them (MaskedBatch), or on a GPU.
template <typename D>
struct BasicMaskedBatch {
  Tensor<float, D> images;         // [batch, height, width, channels]
  Tensor<std::int32_t, D> labels;  // [batch, height, width]; no_label for pixels that don't count
  std::int64_t first_sample = 0;   // the sample number of the first row

  std::int64_t size() const { return images.dim(0); }
};
using MaskedBatch = BasicMaskedBatch<Cpu>;

inline std::int64_t bytes_of(const MaskedBatch& batch) { return bytes_of(batch.images) + bytes_of(batch.labels); }

template <typename D>
BasicMaskedBatch<D> on_device(const MaskedBatch& loaded) {
  return {.images = on_device<D>(loaded.images), .labels = on_device<D>(loaded.labels), .first_sample = loaded.first_sample};
}

struct MaskedImagesOptions {
  Normalization normalization = {};  // of the images
  std::optional<int> ignored = {};   // the mask value of pixels that don't count, for example 255; it becomes no_label
};

// A dataset of image pairs for Loader and evaluation_batches, without augmentation. Pass logits [batch, height, width, classes]
// and the batch's labels to cross_entropy or ConfusionMatrix.
class MaskedImages {
 public:
  // Throws Error if images and masks differ in number or size, and for a normalization that does not match the channels.
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
