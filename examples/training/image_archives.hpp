#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "training/image_recipe.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/images/read_images.hpp"
#include "trireme/data/loaders/tar_images.hpp"
#include "trireme/data/sources/locations_of.hpp"

// Whether --data or --test-data is a pattern of tar archives: "train-{000..099}.tar", or a list of them, "@archives.txt".
inline bool are_archives(std::string_view data) { return data.ends_with(".tar") || data.starts_with('@'); }

// The images of the archives of --data and --test-data, decoded when they are read. The centre of an image whose shorter side
// was resized to `size` is taken, unless `resizing` is given.
inline trireme::data::Images read_archives(const ImageRecipe& recipe, std::int64_t size, std::int64_t channels,
                                           const trireme::data::Resizing& resizing) {
  using namespace trireme;
  require(recipe.classes > 0, "--classes is missing: the images of {} have labels below it", recipe.data);
  require(recipe.test_data.empty() || are_archives(recipe.test_data), "--test-data {} is not tar archives, as --data is",
          recipe.test_data);
  const auto read = [&](const std::string& pattern) {
    static constexpr std::array<std::string_view, 1> endings{".tar"};
    return data::tar_images(
        data::TarShards(data::locations_of(pattern, endings)),
        {.images = {.height = size, .width = size, .channels = channels, .classes = recipe.classes, .resizing = resizing}});
  };
  data::Images images{.training = read(recipe.data), .test = {}};
  if (!recipe.test_data.empty()) images.test = read(recipe.test_data);
  return images;
}

// ImageNet's mean and standard deviation, by which models of photos are trained; of grey images half of the range. To compute
// those of archives would read all of their images.
inline trireme::data::Normalization usual_normalization(std::int64_t channels) {
  if (channels == 3) return {.mean = {0.485F, 0.456F, 0.406F}, .std = {0.229F, 0.224F, 0.225F}};
  return {.mean = {0.5F}, .std = {0.5F}};
}
