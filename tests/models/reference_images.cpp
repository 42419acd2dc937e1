#include "models/reference_images.hpp"

#include <utility>

#include "fixtures.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tests {
namespace {

std::size_t channels_of(const SafetensorsFile& file) {
  const Shape shape = file.at("images").shape;
  return shape.size() == 5 ? static_cast<std::size_t>(shape[2]) : 1;
}

}  // namespace

ImageBatches::ImageBatches(const SafetensorsFile& file, double mean, double std)
    : ImageBatches(file, std::vector(channels_of(file), mean), std::vector(channels_of(file), std)) {}

ImageBatches::ImageBatches(const SafetensorsFile& file, std::vector<double> mean, std::vector<double> std)
    : images_(read_integers(file, "images")), mean_(std::move(mean)), std_(std::move(std)) {
  const Shape shape = file.at("images").shape;
  num_batches_ = shape[0];
  batch_ = shape[1];
  height_ = shape[shape.size() - 2];
  width_ = shape[shape.size() - 1];
  channels_ = static_cast<std::int64_t>(channels_of(file));
  require(mean_.size() == channels_of(file) && std_.size() == channels_of(file),
          "images of {} channels have {} means and {} deviations", channels_, mean_.size(), std_.size());
}

Tensor<float> ImageBatches::images(std::int64_t step, Range samples) const {
  Tensor<float> result({samples.count(), height_, width_, channels_});
  const std::int64_t pixels = height_ * width_;
  const std::int64_t begin = (step * batch_ + samples.begin) * channels_ * pixels;
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
