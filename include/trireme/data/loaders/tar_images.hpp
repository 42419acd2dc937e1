#pragma once

#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/images/encoded_images.hpp"
#include "trireme/data/shards/tar_shards.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct TarImageOptions {
  EncodedImageOptions images = {};
  std::vector<std::string> image_fields = {"jpg", "jpeg", "png", "webp"};  // an image is the first of these that its sample has
  std::string label_field = "cls";                                         // a whole number as text
  std::string label_key = {};  // where it is given, label_field holds a JSON object, and this of it is the number
};

// The images of tar archives, each decoded when it is read:
//
//   const auto images = data::tar_images(data::TarShards(data::locations_of("train-{000..099}.tar")),
//                                        {.images = {.height = 224, .width = 224, .classes = 1000}});
//   const data::ImageLoader loader(images, {.batch = run.batch(),
//                                           .augmentation = {.random_resized_crop = data::RandomResizedCrop{}}});
//
// A sample without image or label is an Error{corrupt_file} with its archive and key, where it is read.
ImageDataset tar_images(TarShards shards, TarImageOptions options);

}  // namespace data
}  // namespace trireme
