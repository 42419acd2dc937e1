#include "trireme/data/images/read_images.hpp"

#include <string_view>
#include <vector>

#include "data/sources/files_below.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/images/cifar10.hpp"
#include "trireme/data/images/mnist.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::data {
namespace {

// The file, plain or as .gz; empty where there is neither.
Location find_packed(const Location& folder, const std::string& name) {
  for (const Location& path : {folder / name, folder / (name + ".gz")}) {
    if (file_system_of(path)->exists(path)) return path;
  }
  return {};
}

bool holds_mnist(const Location& path) { return is_folder(path) && !find_packed(path, "train-images-idx3-ubyte").empty(); }

std::optional<ImageDataset> read_mnist_part(const Location& folder, const std::string& part) {
  const Location images = find_packed(folder, part + "-images-idx3-ubyte");
  if (images.empty()) return std::nullopt;
  const Location labels = find_packed(folder, part + "-labels-idx1-ubyte");
  return read_mnist(images, labels.empty() ? folder / (part + "-labels-idx1-ubyte") : labels);
}

// Reads the file `path`, or the .bin files of the folder `path` whose names begin with `part`.
std::optional<ImageDataset> read_cifar10_part(const Location& path, std::string_view part) {
  if (!is_folder(path)) return read_cifar10({path});
  std::vector<Location> files;
  for (const auto& [name, kind] : content_of_folder(path)) {
    if (name.starts_with(part) && name.ends_with(".bin")) files.push_back(path / name);
  }
  if (files.empty()) return std::nullopt;
  return read_cifar10(files);
}

[[noreturn]] void refuse(const Location& path, const char* message, const char* hint) {
  throw Error({.code = ErrorCode::io, .message = message, .path = path.string(), .hint = hint});
}

// Test images of the same kind as the training images.
std::optional<ImageDataset> find_test_images(const Location& path, bool of_mnist) {
  return of_mnist ? read_mnist_part(path, "t10k") : read_cifar10_part(path, "test_batch");
}

[[noreturn]] void refuse_test_images(const Location& path, bool of_mnist) {
  if (!find_test_images(path, !of_mnist)) {
    refuse(path, "the folder holds no test images",
           of_mnist ? "name a folder with t10k-images-idx3-ubyte" : "name a folder with test_batch.bin, or such a file");
  }
  refuse(path,
         of_mnist ? "the test images are CIFAR-10's, but the training images are MNIST's"
                  : "the test images are MNIST's, but the training images are CIFAR-10's",
         "name test images of the same kind");
}

}  // namespace

ImageDataset read_training_images(const Location& path) {
  std::optional<ImageDataset> images =
      holds_mnist(path) ? read_mnist_part(path, "train") : read_cifar10_part(path, "data_batch");
  if (!images) {
    refuse(path, "the folder holds no training images",
           "name a folder with train-images-idx3-ubyte or data_batch_1.bin, or a file in CIFAR-10's format");
  }
  return *std::move(images);
}

ImageDataset read_test_images(const Location& path) {
  std::optional<ImageDataset> images;
  if (is_folder(path)) images = read_mnist_part(path, "t10k");
  if (!images) images = read_cifar10_part(path, "test_batch");
  if (!images) {
    refuse(path, "the folder holds no test images",
           "name a folder with t10k-images-idx3-ubyte or test_batch.bin, or a file in CIFAR-10's format");
  }
  return *std::move(images);
}

Images read_images(const Location& path, const Location& test_path) {
  const Location& test = test_path.empty() && is_folder(path) ? path : test_path;
  Images images{.training = read_training_images(path), .test = {}};
  const bool of_mnist = holds_mnist(path);
  if (!test.empty()) images.test = find_test_images(test, of_mnist);
  if (!images.test && !test_path.empty()) refuse_test_images(test_path, of_mnist);
  require(!images.test || images.test->shape() == images.training.shape(), "the images of {} and {} differ in size", path,
          test);
  return images;
}

}  // namespace trireme::data
