#pragma once

#include <optional>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/data/images/image_dataset.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct Images {
  ImageDataset training;
  std::optional<ImageDataset> test;
};

// Reads MNIST if `path` is a folder with train-images-idx3-ubyte, plain or as .gz. Otherwise reads CIFAR-10: the
// data_batch*.bin files of a folder, or one file. Throws Error.
ImageDataset read_training_images(const Location& path);

// Reads MNIST if `path` is a folder with t10k-images-idx3-ubyte, plain or as .gz. Otherwise reads CIFAR-10: test_batch.bin of
// a folder, or one file. Throws Error.
ImageDataset read_test_images(const Location& path);

// Reads training images from `path` and test images from `test_path`. If `test_path` is empty, takes the test images in the
// folder `path`, if there are any.
Images read_images(const Location& path, const Location& test_path);

}  // namespace data
}  // namespace trireme
