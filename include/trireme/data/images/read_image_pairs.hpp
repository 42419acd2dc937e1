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

struct ImagePairOptions {
  std::int64_t height = 0;  // pixels of all images and masks
  std::int64_t width = 0;
  std::int64_t channels = 3;                     // of the images. 3: red, green, blue; 1: grey
  Resampling resampling = Resampling::bilinear;  // of the images; masks always use nearest
  std::string mask_suffix = {};                  // follows the image's name in the name of its mask, for example "_mask"

  // Reads only the share of rank `index` of `count` ranks, as divided by share_of().
  int index = 0;
  int count = 1;
};

// Images, each with a mask that holds the class of every pixel.
struct ImagePairs {
  ImageDataset images;             // [height, width, channels]; their labels are unused
  ImageDataset masks;              // [height, width, 1]: the numbers stored in the mask files
  std::vector<std::string> names;  // of each pair: path below the folder without extension, for example "street/0012"
};

// Reads images and their masks from two folders, with subfolders. A mask has its image's name, up to the extension:
//
//   images/1.jpg  images/street/2.png  masks/1.png  masks/street/2.png
//
//   const auto pairs = data::read_image_pairs("images", "masks", {.height = 256, .width = 256});
//   const data::Loader loader(data::MaskedImages(pairs, {.ignored = 255}), run.batch());
//
// With a .mask_suffix, images and masks can lie in the same folder. Pairs are sorted by name. Files are read as by
// read_image(), masks with `numbers`. Hidden names are skipped, links are followed.
//
// Throws Error{corrupt_file} with the names for images without a mask, masks without an image, two files with the same name,
// and a mask of another size than its image. The errors of read_image() are thrown too.
ImagePairs read_image_pairs(const Location& images, const Location& masks, const ImagePairOptions& options);

std::string content_of(const ImagePairs& pairs);  // a text that identifies images and masks

}  // namespace data
}  // namespace trireme
