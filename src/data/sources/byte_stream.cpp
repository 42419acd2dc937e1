#include "data/sources/byte_stream.hpp"

#include <algorithm>
#include <span>

#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

constexpr std::uint64_t piece_bytes = 1 << 20;

}  // namespace

ByteStream::ByteStream(const Location& path, std::int64_t from) : file_(open_file(path)), size_(file_->size()) {
  const auto first = static_cast<std::uint64_t>(from);
  if (path.extension() == ".gz") {
    packed_ = std::make_unique<Gunzip>(path);
    skip_ = first;
  } else {
    require(first <= size_, "{} has {} bytes, and {} of it were read before", path, size_, first);
    at_ = first;
  }
}

bool ByteStream::read(std::string& into) {
  const std::size_t before = into.size();
  while (into.size() == before) {
    if (at_ == size_) {
      if (packed_) packed_->finish();
      return false;
    }
    const auto count = static_cast<std::size_t>(std::min(piece_bytes, size_ - at_));
    std::string& read = packed_ ? piece_ : into;
    const std::size_t kept = packed_ ? 0 : before;
    read.resize(kept + count);
    file_->read_at(std::as_writable_bytes(std::span(read).subspan(kept)), at_);
    at_ += count;
    if (!packed_) return true;
    packed_->unpack({reinterpret_cast<const std::uint8_t*>(piece_.data()), piece_.size()},
                    [&](std::span<const std::uint8_t> unpacked) {
                      const std::uint64_t skipped = std::min<std::uint64_t>(skip_, unpacked.size());
                      skip_ -= skipped;
                      const auto rest = unpacked.subspan(static_cast<std::size_t>(skipped));
                      into.append(reinterpret_cast<const char*>(rest.data()), rest.size());
                    });
  }
  return true;
}

}  // namespace trireme::data
