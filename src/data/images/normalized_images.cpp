#include "trireme/data/images/normalized_images.hpp"

#include <utility>

#include "data/images/image_content.hpp"
#include "data/images/image_transforms.hpp"
#include "trireme/core/first_exception.hpp"

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
  FirstException thrown;
#pragma omp parallel for schedule(dynamic, 4) if (rows * shape.numel() >= least_values)
  for (std::int64_t row = 0; row < rows; ++row) {
    thrown.guard([&] {
      const auto at = static_cast<std::size_t>(row);
      const Image into{.pixels = batch.images.span().subspan(at * values, values), .shape = shape};
      const LabelledPixels stored = read_pixels(images_, indices[at]);
      read_shifted(stored.pixels, 0, 0, into);
      normalize(into, normalization_);
      batch.labels.data()[row] = stored.label;
    });
  }
  thrown.rethrow();
  return batch;
}

}  // namespace trireme::data
