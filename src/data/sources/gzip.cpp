#include "data/sources/gzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

constexpr int gzip_windows = 15 + 16;                          // the largest window, plus 16 for gzip's format
constexpr std::size_t largest_request = std::size_t{1} << 30;  // zlib counts bytes in unsigned int

[[noreturn]] void refuse(const Location& path, std::string message) {
  throw Error(
      {.code = ErrorCode::corrupt_file, .message = std::move(message), .path = path.string(), .hint = "fetch the file again"});
}

}  // namespace

struct Gunzip::Impl {
  explicit Impl(Location of) : path(std::move(of)) {
    if (inflateInit2(&stream, gzip_windows) != Z_OK) {
      throw Error({.code = ErrorCode::out_of_memory, .message = "zlib cannot start to unpack"});
    }
  }
  ~Impl() { inflateEnd(&stream); }

  Location path;
  z_stream stream{};
  std::uint64_t unpacked = 0;
  bool ended = false;  // a gzip file is one or more compressed members
};

Gunzip::Gunzip(Location path) : impl_(std::make_unique<Impl>(std::move(path))) {}
Gunzip::~Gunzip() = default;

void Gunzip::unpack(std::span<const std::uint8_t> bytes, const std::function<void(std::span<const std::uint8_t>)>& take) {
  z_stream& stream = impl_->stream;
  std::array<std::uint8_t, 1 << 16> piece;
  bool is_full = false;  // there is more to come out of what went in
  while (!bytes.empty() || is_full) {
    if (impl_->ended) inflateReset(&stream);
    const auto given = static_cast<uInt>(std::min(bytes.size(), largest_request));
    stream.next_in = const_cast<Bytef*>(bytes.data());
    stream.avail_in = given;
    stream.next_out = piece.data();
    stream.avail_out = static_cast<uInt>(piece.size());
    const int result = inflate(&stream, Z_NO_FLUSH);
    bytes = bytes.subspan(given - stream.avail_in);
    const std::size_t made = piece.size() - stream.avail_out;
    take(std::span(piece).first(made));
    impl_->unpacked += made;
    impl_->ended = result == Z_STREAM_END;
    is_full = stream.avail_out == 0 && !impl_->ended;
    if (result == Z_MEM_ERROR) throw Error({.code = ErrorCode::out_of_memory, .message = "zlib has no memory to unpack"});
    if (result != Z_OK && result != Z_BUF_ERROR && !impl_->ended) {
      refuse(impl_->path, fmt::format("the gzip file is damaged, after {} unpacked bytes: {}", impl_->unpacked,
                                      stream.msg != nullptr ? stream.msg : "no more is known"));
    }
  }
}

void Gunzip::finish() const {
  if (!impl_->ended) refuse(impl_->path, fmt::format("the gzip file ends early, after {} unpacked bytes", impl_->unpacked));
}

std::vector<std::uint8_t> gunzip(std::span<const std::uint8_t> bytes, const Location& path) {
  std::vector<std::uint8_t> content;
  Gunzip packed(path);
  packed.unpack(bytes, [&](std::span<const std::uint8_t> piece) { content.insert(content.end(), piece.begin(), piece.end()); });
  packed.finish();
  return content;
}

}  // namespace trireme::data
