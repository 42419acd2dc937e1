#pragma once

#include <optional>
#include <string>

#include "trireme/data/image_dataset.hpp"

struct Images {
  trireme::data::ImageDataset training;
  std::optional<trireme::data::ImageDataset> test;
};

// MNIST's files, packed or not, where `path` is a folder that holds train-images-idx3-ubyte; otherwise CIFAR-10's. Throws
// trireme::Error.
trireme::data::ImageDataset read_training_images(const std::string& path);

// An empty test path means the test images in the folder `path`, or none where it has none.
Images read_images(const std::string& path, const std::string& test_path);
