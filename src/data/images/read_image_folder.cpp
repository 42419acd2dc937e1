#include "trireme/data/images/read_image_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/images/decode_picture.hpp"
#include "data/images/resizing.hpp"
#include "data/sources/files_below.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/sources/batch_share.hpp"
#include "trireme/data/sources/dataset.hpp"

namespace trireme::data {
namespace {

struct LabelledFile {
  Location path;
  std::int32_t label;
};

[[noreturn]] void refuse_folder(const Location& path, std::string message, std::string hint) {
  throw Error({.code = ErrorCode::corrupt_file, .message = std::move(message), .path = path.string(), .hint = std::move(hint)});
}

std::vector<Location> class_folders(const Location& path) {
  std::vector<Location> folders;
  for (const FolderEntry& entry : content_of_folder(path)) {
    if (leads_to_folder(path, entry)) folders.push_back(path / entry.name);
  }
  if (folders.empty())
    refuse_folder(path, "the folder holds no folders of classes", "put the images of each class into a folder of its own");
  return folders;
}

std::vector<std::string> names_of(const std::vector<Location>& folders) {
  std::vector<std::string> names;
  for (const Location& folder : folders) names.push_back(folder.name());
  return names;
}

std::vector<LabelledFile> find_files(const std::vector<Location>& folders, const std::vector<std::string>& classes) {
  std::vector<LabelledFile> files;
  for (const Location& folder : folders) {
    const auto found = std::ranges::find(classes, folder.name());
    if (found == classes.end()) {
      refuse_folder(
          folder, "the folder's name is not among the classes",
          fmt::format("the classes are {}",
                      fmt::join(classes.begin(), classes.begin() + std::min<std::ptrdiff_t>(30, std::ssize(classes)), ", ")));
    }
    if (std::ranges::count(classes, *found) > 1)
      refuse_folder(folder, "several classes have this name", "give each class a name of its own, in id2label too");
    const std::vector<Location> of_class = files_below(folder);
    for (const Location& file : of_class)
      files.push_back({.path = file, .label = static_cast<std::int32_t>(found - classes.begin())});
    if (of_class.empty()) refuse_folder(folder, "the class has no images", "remove the folder or put images into it");
  }
  return files;
}

Picture read_taken(const Location& path, const ImageFolderOptions& options) {
  Picture picture = read_image(path, {.channels = options.channels});
  const ImageShape shape = resized_shape(picture.shape, options.resizing, options.height, options.width, path);
  picture = resized(std::move(picture), shape.height, shape.width, options.resizing.resampling);
  return centre_of(picture, options.height, options.width);
}

}  // namespace

ImageFolder read_image_folder(const Location& path, const ImageFolderOptions& options) {
  check(options.resizing, options.height, options.width, options.channels);
  require(options.count > 0 && options.index >= 0 && options.index < options.count,
          "rank {} of {} does not exist: .index must lie in [0, .count)", options.index, options.count);
  const std::vector<Location> folders = class_folders(path);
  std::vector<std::string> classes = options.classes.empty() ? names_of(folders) : options.classes;
  const std::vector<LabelledFile> files = find_files(folders, classes);
  const Range all{.begin = 0, .end = std::ssize(files)};
  const Range share = share_of(all.end, options.index, options.count);
  const ImageShape shape{.height = options.height, .width = options.width, .channels = options.channels};
  const auto image_bytes = static_cast<std::size_t>(shape.numel());
  const auto num_images = static_cast<std::size_t>(share.count());
  std::vector<std::uint8_t> pixels(num_images * image_bytes);
  std::vector<std::int32_t> labels(num_images);
  const SampleReader reader(options.bad_samples);
  for_each_item(share.count(), 0, [&](std::int64_t image) {
    const auto at = static_cast<std::size_t>(image);
    reader(share.begin + image, all, [&](std::int64_t number) {
      const LabelledFile& file = files[static_cast<std::size_t>(number)];
      std::ranges::copy(read_taken(file.path, options).pixels, pixels.begin() + static_cast<std::ptrdiff_t>(at * image_bytes));
      labels[at] = file.label;
    });
  });
  const std::int64_t num_classes = std::ssize(classes);
  return {.images = ImageDataset(shape, std::move(pixels), std::move(labels), num_classes, reader),
          .class_names = std::move(classes)};
}

bool has_class_folders(const Location& path) {
  return is_folder(path) &&
         std::ranges::any_of(content_of_folder(path), [](const FolderEntry& entry) { return entry.kind == FileKind::folder; });
}

}  // namespace trireme::data
