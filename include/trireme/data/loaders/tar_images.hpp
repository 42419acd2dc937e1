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
  std::vector<std::string> image_fields = {"jpg", "jpeg", "png", "webp"};  // the first of these that a sample has is its image
  std::string label_field = "cls";  // a whole number as text; empty: the images have no labels, and all are of class 0
  std::string label_key = {};       // if given, label_field is a JSON object, and this key has the number
};

// The images of tar archives, each decoded when it is read:
//
//   const auto images = data::tar_images(data::TarShards(data::locations_of("train-{000..099}.tar")),
//                                        {.images = {.height = 224, .width = 224, .classes = 1000}});
//   const data::ImageLoader loader(images, {.batch = run.batch(),
//                                           .augmentation = {.random_resized_crop = data::RandomResizedCrop{}}});
//
// A sample without an image or label is a BadSample, with its archive and key; see EncodedImageOptions::bad_samples.
ImageDataset tar_images(TarShards shards, TarImageOptions options);

}  // namespace data
}  // namespace trireme
