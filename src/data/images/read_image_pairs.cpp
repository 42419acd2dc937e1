#include "trireme/data/images/read_image_pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "data/images/decode_picture.hpp"
#include "data/sources/files_below.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/sources/batch_share.hpp"
#include "trireme/data/sources/dataset.hpp"

namespace trireme::data {
namespace {

constexpr std::size_t most_named = 10;  // names listed in a message

using FilesByName = std::map<std::string, Location>;

struct ImagePair {
  std::string name;
  Location image;
  Location mask;
};

[[noreturn]] void refuse_pairs(const Location& path, std::string message, std::string hint) {
  throw Error({.code = ErrorCode::corrupt_file, .message = std::move(message), .path = path.string(), .hint = std::move(hint)});
}

// The path below the folder, without the extension.
std::string name_below(const Location& folder, const Location& file) {
  std::string name = file.string().substr(folder.string().size());
  name.erase(0, name.find_first_not_of('/'));
  name.resize(name.size() - file.extension().size());
  return name;
}

// The files of a folder for which belongs(name) is true, by their name without the suffix.
FilesByName files_by_name(const Location& folder, const std::string& suffix, const auto& belongs) {
  FilesByName files;
  for (const Location& file : files_below(folder)) {
    std::string name = name_below(folder, file);
    if (!belongs(name)) continue;
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    const auto [other, is_first] = files.emplace(std::move(name), file);
    if (!is_first) {
      refuse_pairs(folder, fmt::format("{} and {} have the same name, \"{}\"", other->second.name(), file.name(), other->first),
                   "rename or remove one of them");
    }
  }
  if (files.empty()) refuse_pairs(folder, "the folder holds no images", "name the folder that holds them");
  return files;
}

// Part of a message: lists the names in `files` that `others` lack.
std::string names_missing(const FilesByName& files, const FilesByName& others, const char* what, const char* lack) {
  std::vector<std::string> names;
  for (const auto& [name, file] : files) {
    if (!others.contains(name)) names.push_back(name);
  }
  if (names.empty()) return "";
  const std::size_t count = names.size();
  if (count > most_named) {
    names.resize(most_named);
    names.emplace_back("...");
  }
  return fmt::format("{} of {} {} {}: {}", count, files.size(), what, lack, fmt::join(names, ", "));
}

std::vector<ImagePair> find_pairs(const Location& images, const Location& masks, const std::string& suffix) {
  const bool together = is_same(images, masks);  // then only the suffix tells which files are masks
  require(!together || !suffix.empty(), "images and masks are in the same folder, {}: set .mask_suffix to what marks the masks",
          images.string());
  const auto is_mask = [&](const std::string& name) { return !together || name.ends_with(suffix); };
  const auto is_image = [&](const std::string& name) { return !together || !name.ends_with(suffix); };
  FilesByName image_files = files_by_name(images, "", is_image);
  FilesByName mask_files = files_by_name(masks, suffix, is_mask);
  std::string message = names_missing(image_files, mask_files, "images", "have no mask");
  const std::string without_image = names_missing(mask_files, image_files, "masks", "have no image");
  if (!message.empty() && !without_image.empty()) message += "; ";
  message += without_image;
  if (!message.empty()) {
    refuse_pairs(masks, message,
                 fmt::format("a mask needs the name of its image in {}, followed by .mask_suffix", images.string()));
  }
  std::vector<ImagePair> pairs;
  for (auto& [name, file] : image_files) {
    pairs.push_back({.name = name, .image = std::move(file), .mask = std::move(mask_files.at(name))});
  }
  return pairs;
}

void check_pair_options(const ImagePairOptions& options) {
  require(options.height > 0 && options.width > 0 && options.width <= most_pixels / options.height,
          "images of {} x {} pixels: set .height and .width to the extents of all images and masks", options.height,
          options.width);
  require(options.channels == 1 || options.channels == 3, "images have 1 channel or 3, got {}", options.channels);
  require(options.count > 0 && options.index >= 0 && options.index < options.count,
          "rank {} of {} does not exist: .index must lie in [0, .count)", options.index, options.count);
}

// Reads an image and its mask and resizes both.
std::pair<Picture, Picture> read_pair(const ImagePair& pair, const ImagePairOptions& options) {
  Picture image = read_image(pair.image, {.channels = options.channels});
  Picture mask = read_image(pair.mask, {.numbers = true});
  if (image.shape.height != mask.shape.height || image.shape.width != mask.shape.width) {
    throw Error({.code = ErrorCode::corrupt_file,
                 .message = fmt::format("a mask differs in size from its image, {}", pair.image.string()),
                 .path = pair.mask.string(),
                 .wanted = fmt::format("{} x {} pixels", image.shape.height, image.shape.width),
                 .had = fmt::format("{} x {}", mask.shape.height, mask.shape.width),
                 .hint = "resize the mask without blending, or rotate it like its image"});
  }
  return {resized(std::move(image), options.height, options.width, options.resampling),
          resized(std::move(mask), options.height, options.width, Resampling::nearest)};
}

ImageDataset without_classes(const ImageShape& shape, std::vector<std::uint8_t> pixels, std::size_t count) {
  return {shape, std::move(pixels), std::vector<std::int32_t>(count), 1};
}

}  // namespace

ImagePairs read_image_pairs(const Location& images, const Location& masks, const ImagePairOptions& options) {
  check_pair_options(options);
  const std::vector<ImagePair> all = find_pairs(images, masks, options.mask_suffix);
  const Range share = share_of(std::ssize(all), options.index, options.count);
  const std::span<const ImagePair> pairs =
      std::span(all).subspan(static_cast<std::size_t>(share.begin), static_cast<std::size_t>(share.end - share.begin));
  const ImageShape of_image{.height = options.height, .width = options.width, .channels = options.channels};
  const ImageShape of_mask{.height = options.height, .width = options.width, .channels = 1};
  std::vector<std::uint8_t> image_pixels(pairs.size() * static_cast<std::size_t>(of_image.numel()));
  std::vector<std::uint8_t> mask_pixels(pairs.size() * static_cast<std::size_t>(of_mask.numel()));
  for_each_item(std::ssize(pairs), 0, [&](std::int64_t pair) {
    const auto [image, mask] = read_pair(pairs[static_cast<std::size_t>(pair)], options);
    std::ranges::copy(image.pixels, image_pixels.begin() + pair * of_image.numel());
    std::ranges::copy(mask.pixels, mask_pixels.begin() + pair * of_mask.numel());
  });
  ImagePairs read{.images = without_classes(of_image, std::move(image_pixels), pairs.size()),
                  .masks = without_classes(of_mask, std::move(mask_pixels), pairs.size()),
                  .names = {}};
  for (const ImagePair& pair : pairs) read.names.push_back(pair.name);
  return read;
}

std::string content_of(const ImagePairs& pairs) {
  return fmt::format("{}; masks of {}", content_of(pairs.images), content_of(pairs.masks));
}

}  // namespace trireme::data
