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

// MNIST's files, packed or not, where `path` is a folder that holds train-images-idx3-ubyte; otherwise CIFAR-10's. Throws
// trireme::Error.
ImageDataset read_training_images(const Location& path);

// MNIST's, where `path` is a folder that holds t10k-images-idx3-ubyte; otherwise CIFAR-10's, test_batch.bin of a folder or all
// of a file.
ImageDataset read_test_images(const Location& path);

// An empty test path means the test images in the folder `path`, or none where it has none.
Images read_images(const Location& path, const Location& test_path);

}  // namespace data
}  // namespace trireme
