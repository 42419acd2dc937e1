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
#include "trireme/data/sources/bad_samples.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct ImageShape {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;

  bool operator==(const ImageShape&) const = default;
  constexpr std::int64_t numel() const noexcept { return height * width * channels; }
};

// The pixels of an image, [height, width, channels]. The object keeps their memory alive.
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

// Images of one shape, each with a class. They lie in memory, or are decoded each time they are read (encoded_images()).
// Copies are cheap: they share the content, which is immutable.
class ImageDataset {
 public:
  // pixels are [count, height, width, channels], labels [count], each in [0, classes). Throws Error if they do not match.
  // `reader`: the one that has read them.
  ImageDataset(const ImageShape& shape, std::vector<std::uint8_t> pixels, std::vector<std::int32_t> labels,
               std::int64_t classes, SampleReader reader = SampleReader());
  ImageDataset(std::shared_ptr<const ImageContent> content, const ImageShape& shape, std::int64_t count, std::int64_t classes,
               SampleReader reader = SampleReader());

  std::int64_t count() const noexcept { return count_; }
  std::int64_t classes() const noexcept { return classes_; }
  const ImageShape& shape() const noexcept { return shape_; }
  bool is_in_memory() const noexcept;  // false: each read decodes an image

  // image() and label() throw Error for an index outside of [0, count()).
  ImagePixels image(std::int64_t index) const;
  std::int32_t label(std::int64_t index) const;

  std::int64_t num_bad_samples() const { return reader_.num_bad(); }  // different ones so far, see BadSampleOptions

  // Images [begin, begin + count). Throws Error if some of them do not exist.
  ImageDataset part(std::int64_t begin, std::int64_t count) const;

  // For the library only: reads an image and its label in one call.
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
  SampleReader reader_;
};

// Each channel becomes (x - mean) / std, where x is in [0, 1]. Empty: no normalization.
struct Normalization {
  std::vector<float> mean = {};  // [channels]
  std::vector<float> std = {};   // [channels]
};

// The mean and standard deviation of each channel over all pixels of all images, computed on all threads of this rank. Throws
// Error if there are no images, or if a channel has the same value in all pixels.
Normalization normalization_of(const ImageDataset& dataset);

// A text that identifies the content: the number of images, the shape, and a digest of pixels and labels.
std::string content_of(const ImageDataset& images);

}  // namespace data
}  // namespace trireme
