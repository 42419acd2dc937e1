#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/images/image_dataset.hpp"
#include "trireme/data/images/read_image.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct ImageFolderOptions {
  std::int64_t height = 0;  // pixels of all images
  std::int64_t width = 0;
  std::int64_t channels = 3;              // 3: red, green and blue; 1: grey
  std::vector<std::string> classes = {};  // in their order, as those of the training images; empty: the names of the folders

  Resizing resizing = {};

  // The images that this one of `count` ranks reads: share_of() all.
  int index = 0;
  int count = 1;
};

struct ImageFolder {
  ImageDataset images;
  std::vector<std::string> class_names;  // of each label
};

// Images that lie in a folder for each class, as torchvision's ImageFolder has them:
//
//   flowers/rose/1.jpg  flowers/rose/2.png  flowers/tulip/a.jpg
//
//   const auto [training, classes] = data::read_image_folder("flowers", {.height = 64, .width = 64});
//   const auto test = data::read_image_folder("more_flowers", {.height = 64, .width = 64, .classes = classes}).images;
//
// Classes are numbered from 0 in the order of their names, images come class by class in the order of theirs, those of folders
// inside of a class too. Names that begin with a dot and files beside the folders of the classes are passed over. Links are
// followed; one that leads nowhere, or to a folder that it lies in, is an Error{io}.
//
// Files are PNG or JPEG by their content. Grey images become red, green and blue and the other way round as by PIL's convert();
// an alpha channel is left out, of 16 bits the upper 8 stay, palettes become colours, and EXIF's orientation is not looked at.
// Images are resized as by PIL's resize() with NEAREST, BILINEAR or BICUBIC: but for NEAREST each pixel is a mean of all that
// it replaces. All threads of this rank read.
//
// Throws Error{corrupt_file} with the path of an image that is damaged, has more than 178,956,970 pixels or the colours of a
// printer (CMYK), of a file that is no image, and of a class without images; Error{not_available} in a build without libpng or
// libjpeg for a file that needs it.
//
// Of several ranks that read parts each may get no image at all.
ImageFolder read_image_folder(const Location& path, const ImageFolderOptions& options);

// Whether a folder holds one at least that may be a class's.
bool has_class_folders(const Location& path);

}  // namespace data
}  // namespace trireme
