#include "trireme/data/images/image_dataset.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/files/file_content.hpp"

namespace trireme::data {
namespace {

using Histogram = std::array<std::int64_t, 256>;  // how often each value occurs

std::vector<Histogram> histograms_of(const ImageDataset& dataset) {
  const auto channels = static_cast<std::size_t>(dataset.shape().channels);
  std::vector<Histogram> histograms(channels, Histogram{});
  for (std::int64_t index = 0; index < dataset.count(); ++index) {
    const std::span<const std::uint8_t> image = dataset.image(index);
    for (std::size_t first = 0; first < image.size(); first += channels) {
      for (std::size_t channel = 0; channel < channels; ++channel) ++histograms[channel][image[first + channel]];
    }
  }
  return histograms;
}

}  // namespace

ImageDataset::ImageDataset(const ImageShape& shape, std::vector<std::uint8_t> pixels, std::vector<std::int32_t> labels,
                           std::int64_t classes)
    : shape_(shape), classes_(classes), count_(std::ssize(labels)) {
  require(shape.height > 0 && shape.width > 0 && shape.channels > 0, "images of {} x {} pixels and {} channels do not exist",
          shape.height, shape.width, shape.channels);
  require(std::ssize(pixels) == count_ * shape.numel(), "{} bytes of pixels do not hold {} images of {} x {} x {} bytes",
          pixels.size(), count_, shape.height, shape.width, shape.channels);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    require(labels[i] >= 0 && labels[i] < classes, "the label {} of image {} is none of the classes 0 to {}", labels[i], i,
            classes - 1);
  }
  content_ = std::make_shared<const Content>(Content{std::move(pixels), std::move(labels)});
}

void ImageDataset::check_index(std::int64_t index) const {
  require(index >= 0 && index < count_, "image {} does not exist among {} images", index, count_);
}

std::span<const std::uint8_t> ImageDataset::image(std::int64_t index) const {
  check_index(index);
  const auto bytes = static_cast<std::size_t>(shape_.numel());
  return std::span(content_->pixels).subspan(static_cast<std::size_t>(begin_ + index) * bytes, bytes);
}

std::int32_t ImageDataset::label(std::int64_t index) const {
  check_index(index);
  return content_->labels[static_cast<std::size_t>(begin_ + index)];
}

ImageDataset ImageDataset::part(std::int64_t begin, std::int64_t count) const {
  require(begin >= 0 && count >= 0 && begin <= count_ && count <= count_ - begin,
          "{} images from {} on do not exist among {} images", count, begin, count_);
  ImageDataset result = *this;
  result.begin_ += begin;
  result.count_ = count;
  return result;
}

Normalization normalization_of(const ImageDataset& dataset) {
  require(dataset.count() > 0, "a dataset without images has no mean");
  Normalization result;
  const auto pixels = static_cast<double>(dataset.count() * dataset.shape().height * dataset.shape().width);
  for (const Histogram& histogram : histograms_of(dataset)) {
    const auto mean_of = [&](const auto& term) {
      double sum = 0;
      for (std::size_t value = 0; value < histogram.size(); ++value) {
        sum += term(static_cast<double>(value)) * static_cast<double>(histogram[value]);
      }
      return sum / pixels;
    };
    const double mean = mean_of([](double value) { return value; });
    const double variance = mean_of([&](double value) { return (value - mean) * (value - mean); });
    require(variance > 0, "channel {} has the same value in all pixels: it cannot be normalized", result.mean.size());
    result.mean.push_back(static_cast<float>(mean / 255));
    result.std.push_back(static_cast<float>(std::sqrt(variance) / 255));
  }
  return result;
}

std::string content_of(const ImageDataset& images) {
  std::vector<std::int32_t> labels;
  std::uint64_t sum = 0;
  for (std::int64_t index = 0; index < images.count(); ++index) {
    labels.push_back(images.label(index));
    sum = 31 * sum + digest_of_bytes(std::as_bytes(images.image(index)));
  }
  sum += digest_of_bytes(std::as_bytes(std::span(labels)));
  const ImageShape& shape = images.shape();
  return fmt::format("{} images of {} x {} x {}, digest {:016x}", images.count(), shape.height, shape.width, shape.channels,
                     sum);
}

}  // namespace trireme::data
