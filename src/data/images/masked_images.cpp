#include "trireme/data/images/masked_images.hpp"

#include <utility>

#include "data/images/image_transforms.hpp"
#include "trireme/core/error.hpp"

namespace trireme::data {

MaskedImages::MaskedImages(ImagePairs pairs, MaskedImagesOptions options)
    : pairs_(std::move(pairs)), options_(std::move(options)) {
  const ImageShape& image = pairs_.images.shape();
  const ImageShape& mask = pairs_.masks.shape();
  require(pairs_.images.count() == pairs_.masks.count(), "the numbers of images, {}, and masks, {}, differ",
          pairs_.images.count(), pairs_.masks.count());
  require(image.height == mask.height && image.width == mask.width && mask.channels == 1,
          "masks of {} x {} pixels and {} channels do not fit images of {} x {} pixels", mask.height, mask.width, mask.channels,
          image.height, image.width);
  check(options_.normalization, image.channels);
}

MaskedBatch MaskedImages::collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const {
  const ImageShape& shape = pairs_.images.shape();
  const std::int64_t rows = std::ssize(indices);
  MaskedBatch batch{.images = Tensor<float>({rows, shape.height, shape.width, shape.channels}),
                    .labels = Tensor<std::int32_t>({rows, shape.height, shape.width}),
                    .first_sample = first_sample};
  const auto values = static_cast<std::size_t>(shape.numel());
  std::int32_t* label = batch.labels.data();
  for (std::size_t row = 0; row < indices.size(); ++row) {
    const Image into{.pixels = batch.images.span().subspan(row * values, values), .shape = shape};
    read_shifted(pairs_.images.image(indices[row]), 0, 0, into);
    normalize(into, options_.normalization);
    for (const std::uint8_t number : pairs_.masks.image(indices[row]))
      *label++ = number == options_.ignored ? no_label : number;
  }
  return batch;
}

}  // namespace trireme::data
