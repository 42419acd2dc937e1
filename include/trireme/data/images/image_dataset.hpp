#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct ImageShape {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;

  bool operator==(const ImageShape&) const = default;
  constexpr std::int64_t numel() const noexcept { return height * width * channels; }
};

// Images of one shape, each of a class. A value: copies share the pixels, which never change.
class ImageDataset {
 public:
  // pixels[count, height, width, channels], labels[count] in [0, classes); what does not fit throws Error.
  ImageDataset(const ImageShape& shape, std::vector<std::uint8_t> pixels, std::vector<std::int32_t> labels,
               std::int64_t classes);

  std::int64_t count() const noexcept { return count_; }
  std::int64_t classes() const noexcept { return classes_; }
  const ImageShape& shape() const noexcept { return shape_; }

  // An index that is not in [0, count()) throws Error.
  std::span<const std::uint8_t> image(std::int64_t index) const;  // [height, width, channels]
  std::int32_t label(std::int64_t index) const;

  // Images [begin, begin + count), which have to exist.
  ImageDataset part(std::int64_t begin, std::int64_t count) const;

 private:
  struct Content {
    std::vector<std::uint8_t> pixels;
    std::vector<std::int32_t> labels;
  };

  void check_index(std::int64_t index) const;

  ImageShape shape_;
  std::int64_t classes_;
  std::int64_t begin_ = 0;  // the first image of this part
  std::int64_t count_;
  std::shared_ptr<const Content> content_;
};

// What is taken from the values in [0, 1] of each channel before they are divided by std. Empty: nothing is done.
struct Normalization {
  std::vector<float> mean = {};  // [channels]
  std::vector<float> std = {};   // [channels]
};

// The mean and standard deviation of each channel over all pixels of all images. No images, and a channel that is the same in
// all pixels, are errors.
Normalization normalization_of(const ImageDataset& dataset);

// In words that differ where the content does: the number, the shape, and a digest of pixels and labels.
std::string content_of(const ImageDataset& images);

}  // namespace data
}  // namespace trireme
