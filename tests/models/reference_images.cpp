#include "models/reference_images.hpp"

#include <utility>

#include "fixtures.hpp"

namespace trireme::tests {

ImageBatches::ImageBatches(const SafetensorsFile& file, std::vector<double> mean, std::vector<double> std)
    : images_(read_integers(file, "images")), mean_(std::move(mean)), std_(std::move(std)) {
  const Shape shape = file.at("images").shape;
  batch_ = shape[1];
  height_ = shape[shape.size() - 2];
  width_ = shape[shape.size() - 1];
  channels_ = shape.size() == 5 ? shape[2] : 1;
}

Tensor<float> ImageBatches::images(std::int64_t step, std::int64_t first, std::int64_t count) const {
  Tensor<float> result({count, height_, width_, channels_});
  const std::int64_t pixels = height_ * width_;
  const std::int64_t begin = (step * batch_ + first) * channels_ * pixels;
  for (std::int64_t index = 0; index < result.numel(); ++index) {
    const auto channel = static_cast<std::size_t>(index % channels_);
    const std::int64_t pixel = index / channels_ % pixels;
    const std::int64_t image = index / (channels_ * pixels);
    const std::int64_t from = begin + (image * channels_ + static_cast<std::int64_t>(channel)) * pixels + pixel;
    const auto byte = static_cast<double>(images_[static_cast<std::size_t>(from)]);
    result.data()[index] = static_cast<float>((byte / 255 - mean_[channel]) / std_[channel]);
  }
  return result;
}

}  // namespace trireme::tests
