#include "trireme/data/images/image_dataset.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <mutex>
#include <utility>

#include "data/images/decode_picture.hpp"
#include "data/images/image_content.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/sources/dataset.hpp"
#include "trireme/files/file_content.hpp"

namespace trireme::data {
namespace {

// Pixels and labels in memory.
class ImagesInMemory final : public ImageContent {
 public:
  ImagesInMemory(std::vector<std::uint8_t> pixels, std::vector<std::int32_t> labels)
      : pixels_(std::move(pixels)), labels_(std::move(labels)) {}

  LabelledPixels read(std::int64_t index, const ImageShape& shape, const BoxRule& box_of) const override {
    const std::span<const std::uint8_t> image = pixels_of(index, shape);
    if (!box_of) return {.pixels = {{std::shared_ptr<void>(), image.data()}, image.size()}, .label = label(index)};
    return {.pixels = pixels_in(resized_box(image, shape, box_of(shape), shape.height, shape.width)), .label = label(index)};
  }

  std::int32_t label(std::int64_t index) const override { return labels_[static_cast<std::size_t>(index)]; }
  bool is_in_memory() const override { return true; }

  std::string description(std::int64_t begin, std::int64_t count, const ImageShape& shape) const override {
    std::uint64_t sum = 0;
    for (std::int64_t index = begin; index < begin + count; ++index) {
      sum = 31 * sum + digest_of_bytes(std::as_bytes(pixels_of(index, shape)));
    }
    sum += digest_of_bytes(
        std::as_bytes(std::span(labels_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count))));
    return fmt::format("{} images of {} x {} x {}, digest {:016x}", count, shape.height, shape.width, shape.channels, sum);
  }

 private:
  std::span<const std::uint8_t> pixels_of(std::int64_t index, const ImageShape& shape) const {
    const auto bytes = static_cast<std::size_t>(shape.numel());
    return std::span(pixels_).subspan(static_cast<std::size_t>(index) * bytes, bytes);
  }

  std::vector<std::uint8_t> pixels_;
  std::vector<std::int32_t> labels_;
};

using Histogram = std::array<std::int64_t, 256>;  // how often each value occurs

std::vector<Histogram> histograms_of(const ImageDataset& dataset) {
  const auto channels = static_cast<std::size_t>(dataset.shape().channels);
  std::vector<Histogram> histograms(channels, Histogram{});
  constexpr std::int64_t piece = 256;  // images that a thread counts before it adds to what all have
  std::mutex mutex;
  for_each_item((dataset.count() + piece - 1) / piece, 0, [&](std::int64_t number) {
    std::vector<Histogram> counted(channels, Histogram{});
    const std::int64_t end = std::min(dataset.count(), (number + 1) * piece);
    for (std::int64_t index = number * piece; index < end; ++index) {
      const ImagePixels image = dataset.image(index);
      for (std::size_t first = 0; first < image.size(); first += channels) {
        for (std::size_t channel = 0; channel < channels; ++channel) ++counted[channel][image[first + channel]];
      }
    }
    const std::scoped_lock lock(mutex);
    for (std::size_t channel = 0; channel < channels; ++channel) {
      std::ranges::transform(counted[channel], histograms[channel], histograms[channel].begin(), std::plus());
    }
  });
  return histograms;
}

}  // namespace

ImageDataset::ImageDataset(const ImageShape& shape, std::vector<std::uint8_t> pixels, std::vector<std::int32_t> labels,
                           std::int64_t classes, SampleReader reader)
    : shape_(shape), classes_(classes), count_(std::ssize(labels)), reader_(std::move(reader)) {
  require(shape.height > 0 && shape.width > 0 && shape.channels > 0, "images of {} x {} pixels and {} channels do not exist",
          shape.height, shape.width, shape.channels);
  require(std::ssize(pixels) == count_ * shape.numel(), "{} bytes of pixels do not hold {} images of {} x {} x {} bytes",
          pixels.size(), count_, shape.height, shape.width, shape.channels);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    require(labels[i] >= 0 && labels[i] < classes, "the label {} of image {} is none of the classes 0 to {}", labels[i], i,
            classes - 1);
  }
  content_ = std::make_shared<const ImagesInMemory>(std::move(pixels), std::move(labels));
}

ImageDataset::ImageDataset(std::shared_ptr<const ImageContent> content, const ImageShape& shape, std::int64_t count,
                           std::int64_t classes, SampleReader reader)
    : shape_(shape), classes_(classes), count_(count), content_(std::move(content)), reader_(std::move(reader)) {}

void ImageDataset::check_index(std::int64_t index) const {
  require(index >= 0 && index < count_, "image {} does not exist among {} images", index, count_);
}

ImagePixels pixels_in(std::vector<std::uint8_t> pixels) {
  const auto kept = std::make_shared<const std::vector<std::uint8_t>>(std::move(pixels));
  return {{kept, kept->data()}, kept->size()};
}

LabelledPixels read_pixels(const ImageDataset& images, std::int64_t index, const BoxRule& box_of) {
  images.check_index(index);
  const Range among{.begin = images.begin_, .end = images.begin_ + images.count_};
  return images.reader_(images.begin_ + index, among,
                        [&](std::int64_t image) { return images.content_->read(image, images.shape_, box_of); });
}

bool ImageDataset::is_in_memory() const noexcept { return content_->is_in_memory(); }

ImagePixels ImageDataset::image(std::int64_t index) const {
  const ImagePixels pixels = read_pixels(*this, index).pixels;
  const auto kept = std::make_shared<const std::pair<std::shared_ptr<const ImageContent>, ImagePixels>>(content_, pixels);
  return {{kept, pixels.data()}, pixels.size()};
}

std::int32_t ImageDataset::label(std::int64_t index) const {
  if (reader_.policy() != OnBadSample::stop) return read_pixels(*this, index).label;  // that of the image in its place
  check_index(index);
  return content_->label(begin_ + index);
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
  return images.content_->description(images.begin_, images.count_, images.shape_);
}

}  // namespace trireme::data
