#include "files/remote/read_ahead.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "files/remote/remote_input.hpp"

namespace trireme::remote {
namespace {

constexpr std::size_t first_block = std::size_t{64} << 10;
constexpr std::size_t largest_block = std::size_t{4} << 20;
constexpr std::size_t largest_gap = std::size_t{256} << 10;  // that is passed over
constexpr std::size_t most_readers = 8;

// Of all files together, that are kept for the next read.
constexpr std::size_t most_kept = std::size_t{256} << 20;
std::atomic<std::size_t> kept_bytes{0};

// Bytes that count as kept while this lives.
class Share {
 public:
  Share() = default;
  explicit Share(std::size_t bytes) : bytes_(bytes) { kept_bytes += bytes_; }
  Share(Share&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
  Share& operator=(Share&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Share() { kept_bytes -= bytes_; }

 private:
  std::size_t bytes_ = 0;
};

// One who reads on.
struct Reader {
  std::uint64_t position = 0;         // behind the last byte that was taken
  std::uint64_t begin = 0;            // of the bytes that are there
  std::vector<std::byte> bytes = {};  // of which some may be taken
  std::size_t block = 0;              // the size of the last one
  Share share = {};

  std::uint64_t end() const { return begin + bytes.size(); }
  bool reads_on_at(std::uint64_t offset) const {
    return offset >= position && offset <= std::max(position, end()) + largest_gap;
  }
};

class ReadAhead final : public InputFile {
 public:
  ReadAhead(std::unique_ptr<InputFile> file, Location location) : file_(std::move(file)), location_(std::move(location)) {}

  std::uint64_t size() const override { return file_->size(); }

  void read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    check_range_in(size(), into.size(), offset, location_);
    if (into.empty()) return;
    if (into.size() >= largest_block) return file_->read_at(into, offset);
    Reader reader;
    if (auto found = take_reader(offset)) {
      reader = *std::move(found);
      read_on(reader, into, offset);
    } else {
      file_->read_at(into, offset);
    }
    reader.position = offset + into.size();
    give_back(std::move(reader));
  }

 private:
  std::optional<Reader> take_reader(std::uint64_t offset) const {
    const std::scoped_lock lock(mutex_);
    const auto found = std::ranges::find_if(readers_, [offset](const Reader& reader) { return reader.reads_on_at(offset); });
    if (found == readers_.end()) return std::nullopt;
    Reader reader = std::move(*found);
    readers_.erase(found);
    reader.share = {};
    return reader;
  }

  void give_back(Reader reader) const {
    if (reader.position == size()) return;  // nobody reads on there
    const bool has_room = kept_bytes + reader.bytes.size() <= most_kept;
    if (reader.position >= reader.end() || !has_room) reader.bytes = {};
    reader.share = Share(reader.bytes.size());
    const std::scoped_lock lock(mutex_);
    if (readers_.size() == most_readers) readers_.erase(readers_.begin());
    readers_.push_back(std::move(reader));
  }

  void read_on(Reader& reader, std::span<std::byte> into, std::uint64_t offset) const {
    if (offset >= reader.begin && offset < reader.end()) {
      const std::size_t count = std::min<std::size_t>(into.size(), reader.end() - offset);
      std::memcpy(into.data(), reader.bytes.data() + (offset - reader.begin), count);
      into = into.subspan(count);
      offset += count;
    }
    if (into.empty()) return;
    reader.block = std::min(largest_block, 2 * std::max({first_block / 2, reader.block, into.size()}));
    reader.bytes.resize(std::min<std::uint64_t>(std::max(reader.block, into.size()), size() - offset));
    reader.begin = offset;
    file_->read_at(reader.bytes, offset);
    std::memcpy(into.data(), reader.bytes.data(), into.size());
  }

  std::unique_ptr<InputFile> file_;
  Location location_;
  mutable std::mutex mutex_;
  mutable std::vector<Reader> readers_;  // the last one to have read stands last
};

}  // namespace

std::unique_ptr<InputFile> with_read_ahead(std::unique_ptr<InputFile> file, const Location& location) {
  return std::make_unique<ReadAhead>(std::move(file), location);
}

}  // namespace trireme::remote
