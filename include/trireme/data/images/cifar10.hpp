#pragma once

#include <concepts>
#include <ranges>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/images/image_dataset.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Reads CIFAR-10 (Krizhevsky 2009) in its binary format: records of one byte for the label and three planes (red, green, blue)
// of 32 x 32 bytes. Returns the images of all `paths`, in order. A path is a file or a folder. From a folder, all *.bin files
// are read, sorted by name, including the test images if the folder has them. Throws Error{corrupt_file}.
ImageDataset read_cifar10(const std::vector<Location>& paths);
template <std::ranges::input_range Paths>
requires(!std::convertible_to<const Paths&, Location>) ImageDataset read_cifar10(const Paths& paths) {
  return read_cifar10(std::vector<Location>(std::ranges::begin(paths), std::ranges::end(paths)));
}

}  // namespace data
}  // namespace trireme
