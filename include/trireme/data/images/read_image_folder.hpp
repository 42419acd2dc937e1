#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/images/image_dataset.hpp"
#include "trireme/data/images/read_image.hpp"
#include "trireme/data/sources/bad_samples.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct ImageFolderOptions {
  std::int64_t height = 0;  // pixels of all images after the centre crop
  std::int64_t width = 0;
  std::int64_t channels = 3;              // 3: red, green, blue; 1: grey
  std::vector<std::string> classes = {};  // class names by label, such as those of the training set; empty: the folders' names

  Resizing resizing = {};

  // Reads only the share of rank `index` of `count` ranks, as divided by share_of().
  int index = 0;
  int count = 1;

  BadSampleOptions bad_samples = {};  // what happens to files that are damaged or no images
};

struct ImageFolder {
  ImageDataset images;
  std::vector<std::string> class_names;  // by label
};

// Reads images from one folder per class, as torchvision's ImageFolder does:
//
//   flowers/rose/1.jpg  flowers/rose/2.png  flowers/tulip/a.jpg
//
//   const auto [training, classes] = data::read_image_folder("flowers", {.height = 64, .width = 64});
//   const auto test = data::read_image_folder("more_flowers", {.height = 64, .width = 64, .classes = classes}).images;
//
// Classes are numbered from 0, sorted by name. Images are sorted by class, then by name; subfolders of a class are read too.
// Names that begin with a dot and files beside the class folders are skipped. Links are followed; a broken link, or a link to
// a folder that contains the link, throws Error{io}.
//
// Files are PNG, JPEG or WebP, recognized by their content. Colours are converted as by PIL's convert(): grey to RGB and RGB to
// grey; palettes become colours, alpha is dropped, 16 bits are cut to the upper 8. EXIF orientation is ignored. Images are
// resized as by PIL's resize() with NEAREST, BILINEAR or BICUBIC. All threads of this rank read.
//
// These files are bad samples: an image that is damaged, has more than 178,956,970 pixels or is CMYK, and a file that is not an
// image. For a bad sample the function throws BadSample with the path, or the next good image takes its place.
// Throws Error{corrupt_file} for a class without images, and Error{not_available} for a file whose library, libpng or libjpeg,
// is missing in this build.
//
// With fewer images than ranks some ranks get no image.
ImageFolder read_image_folder(const Location& path, const ImageFolderOptions& options);

// Whether `path` is a folder with at least one subfolder, which can be a class.
bool has_class_folders(const Location& path);

}  // namespace data
}  // namespace trireme
