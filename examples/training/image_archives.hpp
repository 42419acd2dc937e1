#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "training/image_recipe.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/images/read_images.hpp"
#include "trireme/data/loaders/tar_images.hpp"
#include "trireme/data/sources/locations_of.hpp"

// Whether --data or --test-data is a pattern of tar archives: "train-{000..099}.tar", or a list of them, "@archives.txt".
inline bool are_archives(std::string_view data) { return data.ends_with(".tar") || data.starts_with('@'); }

// The shape of the images that a model reads.
struct ArchivedImages {
  std::int64_t size;
  std::int64_t channels = 3;
  trireme::data::Resizing resizing = {.shorter = size};  // then the centre is taken
};

// The images of the archives of a pattern, decoded when they are read. Without --classes labels are not read.
inline trireme::data::ImageDataset read_archives(const std::string& pattern, const ImageRecipe& recipe,
                                                 const ArchivedImages& images) {
  using namespace trireme;
  static constexpr std::array<std::string_view, 1> endings{".tar"};
  data::TarImageOptions options{.images = {.height = images.size,
                                           .width = images.size,
                                           .channels = images.channels,
                                           .classes = std::max<std::int64_t>(1, recipe.classes),
                                           .resizing = images.resizing,
                                           .bad_samples = recipe.bad_sample_options()}};
  if (recipe.classes == 0) options.label_field.clear();
  return data::tar_images(data::TarShards(data::locations_of(pattern, endings)), std::move(options));
}

// The labelled images of --data and --test-data.
inline trireme::data::Images read_labelled_archives(const ImageRecipe& recipe, const ArchivedImages& images) {
  using namespace trireme;
  require(recipe.classes > 0, "--classes is missing: the images of {} have labels below it", recipe.data);
  require(recipe.test_data.empty() || are_archives(recipe.test_data), "--test-data {} is not tar archives, as --data is",
          recipe.test_data);
  data::Images read{.training = read_archives(recipe.data, recipe, images), .test = {}};
  if (!recipe.test_data.empty()) read.test = read_archives(recipe.test_data, recipe, images);
  return read;
}

// ImageNet's mean and standard deviation, by which models of photos are trained; of grey images half of the range. To compute
// those of archives would read all of their images.
inline trireme::data::Normalization usual_normalization(std::int64_t channels) {
  if (channels == 3) return {.mean = {0.485F, 0.456F, 0.406F}, .std = {0.229F, 0.224F, 0.225F}};
  return {.mean = {0.5F}, .std = {0.5F}};
}
