#include "trireme/data/images/encoded_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "data/images/decode_picture.hpp"
#include "data/images/image_content.hpp"
#include "data/images/resizing.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/stopwatch.hpp"
#include "trireme/data/sources/bad_samples.hpp"

namespace trireme::data {
namespace {

// The largest reduction that leaves twice as many pixels each way as are wanted: what is lost then, resizing would blend.
int reduction_to(std::int64_t height, std::int64_t width, const ImageShape& wanted) {
  int reduction = 8;
  while (reduction > 1 && (height / reduction < 2 * wanted.height || width / reduction < 2 * wanted.width)) reduction /= 2;
  return reduction;
}

// A box of an image that is reduced, with the pixels that it has a part of.
Box reduced_box(const Box& box, int reduction) {
  const auto extent = [&](std::int64_t first, std::int64_t count) {
    return (first + count + reduction - 1) / reduction - first / reduction;
  };
  return {.top = box.top / reduction,
          .left = box.left / reduction,
          .height = extent(box.top, box.height),
          .width = extent(box.left, box.width)};
}

class EncodedContent final : public ImageContent {
 public:
  EncodedContent(const EncodedImageOptions& options, std::function<EncodedImage(std::int64_t)> read, std::string content)
      : options_(options), read_(std::move(read)), content_(std::move(content)) {}

  LabelledPixels read(std::int64_t index, const ImageShape& shape, const BoxRule& box_of) const override {
    Stopwatch stage;
    const EncodedImage image = checked(index);
    const double reading = stage.restart();
    ImagePixels pixels = pixels_in(box_of ? boxed(image, shape, box_of) : whole(image, shape));
    return {.pixels = std::move(pixels), .label = image.label, .reading_seconds = reading, .decoding_seconds = stage.seconds()};
  }

  std::int32_t label(std::int64_t index) const override { return checked(index).label; }

  std::string description(std::int64_t begin, std::int64_t count, const ImageShape& shape) const override {
    return fmt::format("images {} to {} of {} x {} x {} in {}", begin, begin + count, shape.height, shape.width, shape.channels,
                       content_);
  }

 private:
  EncodedImage checked(std::int64_t index) const {
    EncodedImage image = read_(index);
    if (image.label >= 0 && image.label < options_.classes) return image;
    throw BadSample({.message = fmt::format("the label {} is none of the classes 0 to {}", image.label, options_.classes - 1),
                     .path = image.name,
                     .hint = "set .classes to the number of classes"});
  }

  Picture decoded(const EncodedImage& image, const PartRule& part_of) const {
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(image.bytes.data()), image.bytes.size());
    return with_channels(decode_part(bytes, image.name, part_of), options_.channels);
  }

  std::vector<std::uint8_t> boxed(const EncodedImage& image, const ImageShape& shape, const BoxRule& box_of) const {
    std::optional<Box> box;
    const Picture picture = decoded(image, [&](const ImageShape& stored) -> JpegPart {
      const Box whole = box_of(stored);
      const int reduction = options_.reduced ? reduction_to(whole.height, whole.width, shape) : 1;
      box = reduced_box(whole, reduction);
      return {.reduction = reduction, .box = *box};
    });
    if (!box) box = box_of(picture.shape);
    return resized_box(picture.pixels, picture.shape, *box, shape.height, shape.width);
  }

  std::vector<std::uint8_t> whole(const EncodedImage& image, const ImageShape& shape) const {
    ImageShape wanted;
    const auto wanted_of = [&](const ImageShape& stored) {
      return resized_shape(stored, options_.resizing, shape.height, shape.width, image.name);
    };
    Picture picture = decoded(image, [&](const ImageShape& stored) -> JpegPart {
      wanted = wanted_of(stored);
      return {.reduction = options_.reduced ? reduction_to(stored.height, stored.width, wanted) : 1};
    });
    if (wanted.height == 0) wanted = wanted_of(picture.shape);
    picture = resized(std::move(picture), wanted.height, wanted.width, options_.resizing.resampling);
    return centre_of(picture, shape.height, shape.width).pixels;
  }

  EncodedImageOptions options_;
  std::function<EncodedImage(std::int64_t)> read_;
  std::string content_;
};

}  // namespace

ImageDataset encoded_images(std::int64_t count, const EncodedImageOptions& options,
                            std::function<EncodedImage(std::int64_t index)> read, std::string content) {
  check(options.resizing, options.height, options.width, options.channels);
  require(count >= 0 && options.classes > 0, "{} images of {} classes: set .classes", count, options.classes);
  return {std::make_shared<const EncodedContent>(options, std::move(read), std::move(content)),
          {.height = options.height, .width = options.width, .channels = options.channels},
          count,
          options.classes,
          SampleReader(options.bad_samples)};
}

}  // namespace trireme::data
