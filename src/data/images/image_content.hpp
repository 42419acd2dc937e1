#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/images/random_boxes.hpp"
#include "trireme/data/images/image_dataset.hpp"

namespace trireme::data {

// Which box of an image with these extents is read. An empty function: all of it.
using BoxRule = std::function<Box(const ImageShape&)>;

struct LabelledPixels {
  ImagePixels pixels;  // valid while the content exists
  std::int32_t label;
  double reading_seconds = 0;  // of images that are decoded
  double decoding_seconds = 0;
};

// What an ImageDataset is of. Read by several threads.
class ImageContent {
 public:
  virtual ~ImageContent() = default;

  // An image of this shape; where there is a rule, that box of the image as it is stored, as large as the whole.
  virtual LabelledPixels read(std::int64_t index, const ImageShape& shape, const BoxRule& box_of) const = 0;
  virtual std::int32_t label(std::int64_t index) const = 0;
  virtual bool is_in_memory() const { return false; }  // as pixels

  // Of images [begin, begin + count), in words that differ where they do.
  virtual std::string description(std::int64_t begin, std::int64_t count, const ImageShape& shape) const = 0;
};

ImagePixels pixels_in(std::vector<std::uint8_t> pixels);

// An index that is not in [0, count()) throws Error.
LabelledPixels read_pixels(const ImageDataset& images, std::int64_t index, const BoxRule& box_of = {});

}  // namespace trireme::data
