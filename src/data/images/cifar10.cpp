#include "trireme/data/images/cifar10.hpp"

#include <fmt/format.h>

#include <span>
#include <string>

#include "data/sources/files_below.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::data {
namespace {

constexpr std::int64_t classes = 10;
constexpr ImageShape image_shape{.height = 32, .width = 32, .channels = 3};
constexpr std::size_t image_bytes = image_shape.numel();
constexpr std::size_t plane_bytes = image_bytes / image_shape.channels;
constexpr std::size_t record_bytes = 1 + image_bytes;

std::vector<Location> files_in(const Location& folder) {
  std::vector<Location> files;
  for (const FolderEntry& entry : content_of_folder(folder)) {
    if (Location file = folder / entry.name; file.extension() == ".bin") files.push_back(std::move(file));
  }
  if (files.empty()) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "the folder holds no CIFAR-10 images",
                 .path = folder.string(),
                 .wanted = "files named *.bin",
                 .hint = "unpack cifar-10-binary.tar.gz there"});
  }
  return files;
}

[[noreturn]] void refuse(const Location& path, std::string message, std::string wanted, std::string had) {
  throw Error({.code = ErrorCode::corrupt_file,
               .message = std::move(message),
               .path = path.string(),
               .wanted = std::move(wanted),
               .had = std::move(had),
               .hint = "fetch the binary version of CIFAR-10 again"});
}

// Appends the images and labels of a file.
void read_records(const Location& path, std::vector<std::uint8_t>& pixels, std::vector<std::int32_t>& labels) {
  const auto file = open_file(path);
  const std::uint64_t bytes = file->size();
  if (bytes == 0 || bytes % record_bytes != 0) {
    refuse(path, bytes % record_bytes == 0 ? "the file is empty" : "the last record is cut off or bytes follow it",
           fmt::format("a multiple of {} bytes", record_bytes), fmt::format("{} bytes", bytes));
  }
  std::vector<std::uint8_t> records(bytes);
  file->read_at(std::as_writable_bytes(std::span(records)), 0);
  pixels.reserve(pixels.size() + records.size());
  for (std::size_t begin = 0; begin < records.size(); begin += record_bytes) {
    const std::uint8_t label = records[begin];
    if (label >= classes) {
      refuse(path, fmt::format("record {} has no class of CIFAR-10", begin / record_bytes), "a label from 0 to 9",
             fmt::format("{}", label));
    }
    labels.push_back(label);
    const std::uint8_t* planes = &records[begin + 1];
    for (std::size_t pixel = 0; pixel < plane_bytes; ++pixel) {
      for (std::size_t plane = 0; plane < image_bytes; plane += plane_bytes) pixels.push_back(planes[plane + pixel]);
    }
  }
}

}  // namespace

ImageDataset read_cifar10(const std::vector<Location>& paths) {
  require(!paths.empty(), "CIFAR-10 is read from at least one file or folder");
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  for (const Location& path : paths) {
    for (const Location& file : is_folder(path) ? files_in(path) : std::vector{path}) read_records(file, pixels, labels);
  }
  return {image_shape, std::move(pixels), std::move(labels), classes};
}

}  // namespace trireme::data
