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
#include "trireme/data/sources/bad_samples.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// The bytes of a PNG, JPEG or WebP file, and the image's class.
struct EncodedImage {
  std::span<const std::byte> bytes = {};
  std::shared_ptr<const std::byte> memory = {};  // keeps the bytes alive
  std::int32_t label = 0;
  std::string name = {};  // used in errors
};

struct EncodedImageOptions {
  std::int64_t height = 0;  // of all images after resizing, in pixels
  std::int64_t width = 0;
  std::int64_t channels = 3;  // 3: red, green and blue; 1: grey
  std::int64_t classes = 0;   // labels lie in [0, classes)

  // For images without a random crop. A RandomResizedCrop takes its box from the stored image and resizes it to height x width.
  Resizing resizing = {};

  // A JPEG image that is at least 4, 8 or 16 times as high and wide as needed is decoded at 1/2, 1/4 or 1/8 of its size. This
  // is faster, and the values differ a little. False: decodes all pixels.
  bool reduced = true;

  // What happens to images that can't be decoded, and to labels that are no class.
  BadSampleOptions bad_samples = {};
};

// Images that are decoded each time they are read, on all threads of the loader. Only the encoded bytes need memory, or no
// memory is needed if `read` fetches the bytes each time:
//
//   const auto images = data::encoded_images(std::ssize(photos), {.height = 224, .width = 224, .classes = 10},
//                                            [=](std::int64_t index) { return fetched(photos[index]); }, "my photos");
//   const data::ImageLoader loader(images, {.batch = run.batch()});
//
// Several threads call `read`, which may throw BadSample too. `content` is a text that identifies the images, for content_of().
// Reading an image throws BadSample with its name if its label is not a class or its bytes are not an image; with
// OnBadSample::skip the next good image takes its place. Damage in a part that is not decoded, outside of a random crop, is not
// noticed. If `reduced` is false, pixels equal those of read_image_folder().
ImageDataset encoded_images(std::int64_t count, const EncodedImageOptions& options,
                            std::function<EncodedImage(std::int64_t index)> read, std::string content);

}  // namespace data
}  // namespace trireme
