#include "trireme/data/images/mnist.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "data/sources/gzip.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::data {
namespace {

constexpr std::int64_t digits = 10;
constexpr std::uint32_t magic_of_bytes = 0x800;  // of an idx file of bytes, without the number of dims in the lowest byte

[[noreturn]] void refuse(const Location& path, std::string message, std::string wanted, std::string had, std::string hint) {
  throw Error({.code = ErrorCode::corrupt_file,
               .message = std::move(message),
               .path = path.string(),
               .wanted = std::move(wanted),
               .had = std::move(had),
               .hint = std::move(hint)});
}

std::vector<std::uint8_t> read_unpacked(const Location& path) {
  const auto file = open_file(path);
  std::vector<std::uint8_t> bytes(file->size());
  file->read_at(std::as_writable_bytes(std::span(bytes)), 0);
  constexpr std::array<std::uint8_t, 2> gzip_magic = {0x1f, 0x8b};
  return std::ranges::equal(std::span(bytes).first(std::min<std::size_t>(bytes.size(), 2)), gzip_magic) ? gunzip(bytes, path)
                                                                                                        : bytes;
}

// An idx file: the magic number and the extent of each dim, 4 bytes each, big-endian; then one byte per element.
template <std::size_t num_dims>
struct IdxFile {
  std::array<std::uint64_t, num_dims> dims;
  std::vector<std::uint8_t> values;
};

std::uint32_t big_endian(std::span<const std::uint8_t, 4> bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

template <std::size_t num_dims>
IdxFile<num_dims> read_idx(const Location& path) {
  constexpr std::size_t header_bytes = 4 * (1 + num_dims);
  std::vector<std::uint8_t> bytes = read_unpacked(path);
  if (bytes.size() < header_bytes) {
    refuse(path, "the file ends in its header", fmt::format("{} bytes", header_bytes), fmt::format("{} bytes", bytes.size()),
           "fetch the file again");
  }
  const auto word = [&](std::size_t index) { return big_endian(std::span(bytes).subspan(4 * index).template first<4>()); };
  constexpr std::uint32_t magic = magic_of_bytes + num_dims;
  if (word(0) != magic) {
    refuse(path, fmt::format("this is not an idx{} file", num_dims), fmt::format("the magic number {:#010x}", magic),
           fmt::format("{:#010x}", word(0)), "name the file of images first, that of labels second");
  }
  IdxFile<num_dims> file;
  std::uint64_t element_bytes = 1;  // below 2^64: two extents of 32 bits
  for (std::size_t dim = 0; dim < num_dims; ++dim) {
    file.dims[dim] = word(1 + dim);
    if (dim > 0) element_bytes *= file.dims[dim];
  }
  const std::uint64_t content = bytes.size() - header_bytes;
  if (element_bytes == 0 || content / element_bytes != file.dims[0] || content % element_bytes != 0) {
    const bool early = element_bytes != 0 && content / element_bytes < file.dims[0];
    refuse(path, early ? "the file ends early" : "the file goes on after its last element",
           fmt::format("{} elements of {} bytes", file.dims[0], element_bytes), fmt::format("{} bytes", content),
           "fetch the file again");
  }
  file.values.assign(bytes.begin() + header_bytes, bytes.end());
  return file;
}

}  // namespace

ImageDataset read_mnist(const Location& images, const Location& labels) {
  IdxFile<3> pixels = read_idx<3>(images);
  const IdxFile<1> numbers = read_idx<1>(labels);
  if (pixels.dims[0] != numbers.dims[0]) {
    refuse(labels, fmt::format("images and labels do not belong together: the images are those of {}", images.string()),
           fmt::format("{} labels", pixels.dims[0]), fmt::format("{}", numbers.dims[0]),
           "train-images belong to train-labels, t10k-images to t10k-labels");
  }
  const auto wrong = std::ranges::find_if(numbers.values, [](std::uint8_t label) { return label >= digits; });
  if (wrong != numbers.values.end()) {
    refuse(labels, fmt::format("label {} is not a digit", wrong - numbers.values.begin()), "0 to 9", fmt::format("{}", *wrong),
           {});
  }
  return {
      {.height = static_cast<std::int64_t>(pixels.dims[1]), .width = static_cast<std::int64_t>(pixels.dims[2]), .channels = 1},
      std::move(pixels.values),
      {numbers.values.begin(), numbers.values.end()},
      digits};
}

}  // namespace trireme::data
