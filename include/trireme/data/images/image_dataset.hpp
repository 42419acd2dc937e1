#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
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

// The pixels of an image, [height, width, channels], in memory that this keeps.
class ImagePixels {
 public:
  ImagePixels(std::shared_ptr<const std::uint8_t> pixels, std::size_t size) : pixels_(std::move(pixels)), size_(size) {}

  const std::uint8_t* data() const noexcept { return pixels_.get(); }
  std::size_t size() const noexcept { return size_; }
  const std::uint8_t* begin() const noexcept { return data(); }
  const std::uint8_t* end() const noexcept { return data() + size_; }
  std::uint8_t operator[](std::size_t index) const { return data()[index]; }

 private:
  std::shared_ptr<const std::uint8_t> pixels_;
  std::size_t size_;
};

class ImageContent;
struct Box;
struct LabelledPixels;

// Images of one shape, each of a class: in memory, or decoded each time they are read (encoded_images()). A value: copies share
// what they are of, which never changes.
class ImageDataset {
 public:
  // pixels[count, height, width, channels], labels[count] in [0, classes); what does not fit throws Error.
  ImageDataset(const ImageShape& shape, std::vector<std::uint8_t> pixels, std::vector<std::int32_t> labels,
               std::int64_t classes);
  ImageDataset(std::shared_ptr<const ImageContent> content, const ImageShape& shape, std::int64_t count, std::int64_t classes);

  std::int64_t count() const noexcept { return count_; }
  std::int64_t classes() const noexcept { return classes_; }
  const ImageShape& shape() const noexcept { return shape_; }

  // An index that is not in [0, count()) throws Error.
  ImagePixels image(std::int64_t index) const;
  std::int32_t label(std::int64_t index) const;

  // Images [begin, begin + count), which have to exist.
  ImageDataset part(std::int64_t begin, std::int64_t count) const;

  // The library's own way to read an image, and its label, once.
  friend LabelledPixels read_pixels(const ImageDataset& images, std::int64_t index,
                                    const std::function<Box(const ImageShape&)>& box_of);
  friend std::string content_of(const ImageDataset& images);

 private:
  void check_index(std::int64_t index) const;

  ImageShape shape_;
  std::int64_t classes_;
  std::int64_t begin_ = 0;  // the first image of this part
  std::int64_t count_;
  std::shared_ptr<const ImageContent> content_;
};

// What is taken from the values in [0, 1] of each channel before they are divided by std. Empty: nothing is done.
struct Normalization {
  std::vector<float> mean = {};  // [channels]
  std::vector<float> std = {};   // [channels]
};

// The mean and standard deviation of each channel over all pixels of all images, which all threads of this rank read. No
// images, and a channel that is the same in all pixels, are errors.
Normalization normalization_of(const ImageDataset& dataset);

// In words that differ where the content does: the number, the shape, and a digest of pixels and labels.
std::string content_of(const ImageDataset& images);

}  // namespace data
}  // namespace trireme
