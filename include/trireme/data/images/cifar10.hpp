#pragma once

#include <concepts>
#include <ranges>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/images/image_dataset.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// CIFAR-10 (Krizhevsky 2009) in its binary format, files of records of one byte for the label and a red, a green and a blue
// plane of 32 x 32 bytes: the images of all `paths`, in their order. A path is a file or a folder; a folder stands for its
// *.bin files in the order of their names, those of the test images too. Throws Error{corrupt_file}.
ImageDataset read_cifar10(const std::vector<Location>& paths);
template <std::ranges::input_range Paths>
requires(!std::convertible_to<const Paths&, Location>) ImageDataset read_cifar10(const Paths& paths) {
  return read_cifar10(std::vector<Location>(std::ranges::begin(paths), std::ranges::end(paths)));
}

}  // namespace data
}  // namespace trireme
