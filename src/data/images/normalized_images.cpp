#include "trireme/data/images/normalized_images.hpp"

#include <utility>

#include "data/images/image_transforms.hpp"

namespace trireme::data {

NormalizedImages::NormalizedImages(ImageDataset images, Normalization normalization)
    : images_(std::move(images)), normalization_(std::move(normalization)) {
  check(normalization_, images_.shape().channels);
}

ImageBatch NormalizedImages::collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const {
  const ImageShape& shape = images_.shape();
  const std::int64_t rows = std::ssize(indices);
  ImageBatch batch{.images = Tensor<float>({rows, shape.height, shape.width, shape.channels}),
                   .labels = Tensor<std::int32_t>({rows}),
                   .first_sample = first_sample,
                   .valid = rows};
  const auto values = static_cast<std::size_t>(shape.numel());
  for (std::size_t row = 0; row < indices.size(); ++row) {
    const Image into{.pixels = batch.images.span().subspan(row * values, values), .shape = shape};
    read_shifted(images_.image(indices[row]), 0, 0, into);
    normalize(into, normalization_);
    batch.labels.data()[row] = images_.label(indices[row]);
  }
  return batch;
}

}  // namespace trireme::data
