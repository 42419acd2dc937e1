#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/data/images/image_dataset.hpp"
#include "trireme/data/images/read_image.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// An image as a file holds it, PNG, JPEG or WebP, and its class.
struct EncodedImage {
  std::span<const std::byte> bytes = {};
  std::shared_ptr<const std::byte> memory = {};  // keeps the bytes
  std::int32_t label = 0;
  std::string name = {};  // where it was read, for messages
};

struct EncodedImageOptions {
  std::int64_t height = 0;  // pixels of all images
  std::int64_t width = 0;
  std::int64_t channels = 3;  // 3: red, green and blue; 1: grey
  std::int64_t classes = 0;   // labels are below

  // Of images that are not cropped at random. A RandomResizedCrop takes its box of the image as it is stored, and makes it as
  // large as the images are.
  Resizing resizing = {};

  // A JPEG image with at least 4, 8 or 16 times as many pixels each way as are wanted is decoded to a half, a quarter or an
  // eighth of them at once, which takes less time; levels differ a little. False: all its pixels are decoded.
  bool reduced = true;
};

// Images that are decoded each time they are read, on all threads of the loader, so that their files alone need memory, or none
// where `read` fetches them:
//
//   const auto images = data::encoded_images(std::ssize(photos), {.height = 224, .width = 224, .classes = 10},
//                                            [=](std::int64_t index) { return fetched(photos[index]); }, "my photos");
//   const data::ImageLoader loader(images, {.batch = run.batch()});
//
// `read` is called from several threads. `content` are words that differ where the images do, for content_of(). Labels that
// are no classes and what is no image are an Error{corrupt_file} with the image's name, where it is read. Pixels are otherwise
// those of read_image_folder().
ImageDataset encoded_images(std::int64_t count, const EncodedImageOptions& options,
                            std::function<EncodedImage(std::int64_t index)> read, std::string content);

}  // namespace data
}  // namespace trireme
