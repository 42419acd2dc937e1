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
  std::int64_t channels = 3;                     // of images. 3: red, green and blue; 1: grey
  Resampling resampling = Resampling::bilinear;  // of images; of masks the nearest pixel stays
  std::string mask_suffix = {};                  // what the name of a mask has behind that of its image: "_mask"

  // The pairs that this one of `count` ranks reads: share_of() all.
  int index = 0;
  int count = 1;
};

// Images and, of each, which class a pixel is of.
struct ImagePairs {
  ImageDataset images;             // [height, width, channels], none of a class of its own
  ImageDataset masks;              // [height, width, 1]: the numbers of the masks' files
  std::vector<std::string> names;  // of each pair: the path below its folder, without an ending, "street/0012"
};

// The images of a folder and their masks of another, which have the same names but for the ending, in subfolders too:
//
//   images/1.jpg  images/street/2.png  masks/1.png  masks/street/2.png
//
//   const auto pairs = data::read_image_pairs("images", "masks", {.height = 256, .width = 256});
//   const data::Loader loader(data::MaskedImages(pairs, {.ignored = 255}), run.batch());
//
// With a .mask_suffix both may be the same folder. Pairs are sorted by name. Files are read as by read_image(), masks with
// `numbers`. Hidden names are passed over, links followed.
//
// Throws Error{corrupt_file} that names images without a mask and masks without an image, two files of one name, and a mask
// whose extents are not those of its image; and what read_image() throws.
ImagePairs read_image_pairs(const Location& images, const Location& masks, const ImagePairOptions& options);

std::string content_of(const ImagePairs& pairs);  // of images and masks

}  // namespace data
}  // namespace trireme
