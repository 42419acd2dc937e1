#include "data/tables/npy_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "data/tables/npz.hpp"
#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view npy_magic = "\x93NUMPY"sv;
constexpr std::uint64_t most_header_bytes = 1 << 20;

// Parses a text like {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, with the keys in any order.
class NpyDescription {
 public:
  NpyDescription(std::string_view text, const Location& path) : rest_(text), path_(path) {}

  NpyHeader read() {
    NpyHeader header;
    expect('{');
    bool has_element = false, has_order = false, has_dims = false;
    while (!accepts('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        if (begins() == '[') refuse_npy(path_, "the array's elements are records", "save each field as an array of its own");
        header.element = quoted();
        has_element = true;
      } else if (key == "fortran_order") {
        header.columns_first = truth();
        has_order = true;
      } else if (key == "shape") {
        header.dims = extents();
        has_dims = true;
      } else {
        refuse();
      }
      if (!accepts(',') && begins() != '}') refuse();
    }
    if (begins() != '\0' || !has_element || !has_order || !has_dims) refuse();
    return header;
  }

 private:
  [[noreturn]] void refuse() const { refuse_npy(path_, "the header of the array is damaged", "save it again by numpy.save"); }

  char begins() {  // the next character after blanks; zero at the end
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size()));
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool accepts(char character) {
    if (begins() != character || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char character) {
    if (!accepts(character)) refuse();
  }

  std::string_view quoted() {
    const char quote = begins();
    const std::size_t end = rest_.find(quote, 1);
    if ((quote != '\'' && quote != '"') || end == rest_.npos) refuse();
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool truth() {
    begins();
    for (const auto& [word, value] : {std::pair{"True"sv, true}, std::pair{"False"sv, false}}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    refuse();
  }

  std::vector<std::int64_t> extents() {
    std::vector<std::int64_t> dims;
    expect('(');
    while (!accepts(')')) {
      begins();
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      if (error != std::errc() || extent < 0) refuse();
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      dims.push_back(extent);
      if (!accepts(',') && begins() != ')') refuse();
    }
    return dims;
  }

  std::string_view rest_;
  const Location& path_;
};

}  // namespace

void refuse_npy(const Location& path, std::string message, std::string hint) {
  throw Error({.code = ErrorCode::corrupt_file, .message = std::move(message), .path = path.string(), .hint = std::move(hint)});
}

NpyHeader read_npy_header(const RangedFile& file, const Location& path, const std::string& array) {
  NpzMember place{.begin = 0, .bytes = file.size()};
  std::array<std::uint8_t, 12> start{};  // the magic bytes, two of the version, two or four of the length
  const auto read = [&](std::uint64_t at, std::span<std::byte> into) { file.read_at(into, place.begin + at); };
  const auto read_start = [&] {
    start = {};
    read(0, std::as_writable_bytes(std::span(start)).first(std::min<std::uint64_t>(place.bytes, start.size())));
  };
  read_start();
  const bool is_archive = start[0] == 'P' && start[1] == 'K';
  if (is_archive) {
    place = npz_member(file, path, array);
    read_start();
  } else if (!array.empty()) {
    refuse_npy(path, fmt::format("the file is no archive (npz) that may hold an array \"{}\"", array), "give no name");
  }
  if (!std::string_view(reinterpret_cast<const char*>(start.data()), start.size()).starts_with(npy_magic)) {
    refuse_npy(path, "the file is not an array written by numpy.save",
               "save one array by numpy.save, or several by numpy.savez");
  }
  const int version = start[6];
  if (version < 1 || version > 3) refuse_npy(path, fmt::format("the array's format has the version {}", version));
  std::uint64_t length = start[8] | start[9] << 8;
  if (version > 1) length |= std::uint64_t{start[10]} << 16 | std::uint64_t{start[11]} << 24;
  const std::uint64_t begin = version > 1 ? 12 : 10;
  if (begin + length > place.bytes || length > most_header_bytes) refuse_npy(path, "the file ends in the header of the array");
  std::string text(length, '\0');
  read(begin, std::as_writable_bytes(std::span(text)));
  NpyHeader header = NpyDescription(text, path).read();
  header.begin = place.begin + begin + length;
  header.bytes = place.bytes - begin - length;
  return header;
}

}  // namespace trireme::data
