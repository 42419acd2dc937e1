#include "data/sources/gzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

constexpr int gzip_windows = 15 + 16;                          // the largest window, plus 16 for gzip's format
constexpr std::size_t largest_request = std::size_t{1} << 30;  // zlib counts bytes in unsigned int

[[noreturn]] void refuse(const Location& path, std::string message) {
  throw Error(
      {.code = ErrorCode::corrupt_file, .message = std::move(message), .path = path.string(), .hint = "fetch the file again"});
}

class Inflater {
 public:
  Inflater() {
    if (inflateInit2(&stream_, gzip_windows) != Z_OK) {
      throw Error({.code = ErrorCode::out_of_memory, .message = "zlib cannot start to unpack"});
    }
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

}  // namespace

std::vector<std::uint8_t> gunzip(std::span<const std::uint8_t> bytes, const Location& path) {
  Inflater inflater;
  z_stream& stream = inflater.stream();
  std::vector<std::uint8_t> content;
  std::array<std::uint8_t, 1 << 16> piece;
  bool ended = false;  // a gzip file is one or more compressed members
  while (!bytes.empty() || !ended) {
    if (ended) inflateReset(&stream);
    const auto given = static_cast<uInt>(std::min(bytes.size(), largest_request));
    stream.next_in = const_cast<Bytef*>(bytes.data());
    stream.avail_in = given;
    stream.next_out = piece.data();
    stream.avail_out = static_cast<uInt>(piece.size());
    const int result = inflate(&stream, Z_NO_FLUSH);
    bytes = bytes.subspan(given - stream.avail_in);
    content.insert(content.end(), piece.begin(), piece.end() - stream.avail_out);
    ended = result == Z_STREAM_END;
    if (result == Z_MEM_ERROR) throw Error({.code = ErrorCode::out_of_memory, .message = "zlib has no memory to unpack"});
    if (result == Z_BUF_ERROR) refuse(path, fmt::format("the gzip file ends early, after {} unpacked bytes", content.size()));
    if (result != Z_OK && !ended) {
      refuse(path, fmt::format("the gzip file is damaged, after {} unpacked bytes: {}", content.size(),
                               stream.msg != nullptr ? stream.msg : "no more is known"));
    }
  }
  return content;
}

}  // namespace trireme::data
