#include "files/remote/read_ahead.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "files/remote/remote_input.hpp"

namespace trireme::remote {
namespace {

constexpr std::size_t first_block = std::size_t{64} << 10;
constexpr std::size_t largest_block = std::size_t{8} << 20;
constexpr std::size_t largest_gap = std::size_t{256} << 10;  // that is passed over
constexpr std::size_t most_readers = 8;

// Of all files together.
constexpr std::size_t most_kept = std::size_t{512} << 20;
std::atomic<std::size_t> kept_bytes{0};

// Bytes of a file that are kept for reads to come.
class Block {
 public:
  Block() = default;
  Block(std::uint64_t begin, std::vector<std::byte> bytes) : begin_(begin), bytes_(std::move(bytes)) {
    kept_bytes += bytes_.size();
  }
  Block(Block&& other) noexcept : begin_(other.begin_), bytes_(std::exchange(other.bytes_, {})) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Block() { kept_bytes -= bytes_.size(); }

  std::uint64_t begin() const { return begin_; }

  // How many of the bytes from `offset` on it has.
  std::size_t take(std::span<std::byte> into, std::uint64_t offset) const {
    if (offset < begin_ || offset >= begin_ + bytes_.size()) return 0;
    const std::size_t count = std::min<std::size_t>(into.size(), begin_ + bytes_.size() - offset);
    std::memcpy(into.data(), bytes_.data() + (offset - begin_), count);
    return count;
  }

 private:
  std::uint64_t begin_ = 0;
  std::vector<std::byte> bytes_;
};

// A place where somebody reads on, or several threads that share the work.
struct Reader {
  // The file's mutex guards these: what the blocks cover, with the one that is on its way.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::mutex mutex;  // guards the rest: who finds it locked waits for a block
  Block earlier = {};
  Block latest = {};
  std::size_t block_bytes = 0;
};

class ReadAhead final : public InputFile {
 public:
  ReadAhead(std::unique_ptr<InputFile> file, Location location) : file_(std::move(file)), location_(std::move(location)) {}

  std::uint64_t size() const override { return file_->size(); }
  std::string version() const override { return file_->version(); }
  Location location() const override { return location_; }

  void read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    check_range_in(size(), into.size(), offset, location_);
    if (into.empty()) return;
    if (into.size() >= largest_block) return file_->read_at(into, offset);
    if (const auto reader = reader_at(offset)) return read_on(*reader, into, offset);
    file_->read_at(into, offset);
    const std::uint64_t end = offset + into.size();
    if (end < size()) add_reader(end);
  }

 private:
  std::shared_ptr<Reader> reader_at(std::uint64_t offset) const {
    const std::scoped_lock lock(mutex_);
    const auto found = std::ranges::find_if(readers_, [offset](const std::shared_ptr<Reader>& reader) {
      return offset >= reader->begin && offset <= reader->end + largest_gap;
    });
    if (found == readers_.end()) return nullptr;
    std::rotate(found, found + 1, readers_.end());
    return readers_.back();
  }

  void add_reader(std::uint64_t offset) const {
    auto reader = std::make_shared<Reader>();
    reader->begin = reader->end = offset;
    const std::scoped_lock lock(mutex_);
    if (readers_.size() == most_readers) readers_.erase(readers_.begin());
    readers_.push_back(std::move(reader));
  }

  void remove_reader(const Reader& reader) const {
    const std::scoped_lock lock(mutex_);
    std::erase_if(readers_, [&reader](const std::shared_ptr<Reader>& other) { return other.get() == &reader; });
  }

  void read_on(Reader& reader, std::span<std::byte> into, std::uint64_t offset) const {
    const std::scoped_lock lock(reader.mutex);
    while (!into.empty()) {
      std::size_t count = reader.latest.take(into, offset);
      if (count == 0) count = reader.earlier.take(into, offset);
      const bool fell_behind = offset < reader.latest.begin();
      if (count == 0 && (fell_behind || kept_bytes > most_kept)) return file_->read_at(into, offset);
      if (count == 0) {
        fetch(reader, into.size(), offset);
        continue;
      }
      into = into.subspan(count);
      offset += count;
    }
    if (offset == size()) remove_reader(reader);
  }

  void fetch(Reader& reader, std::size_t wanted, std::uint64_t offset) const {
    reader.block_bytes = std::min(largest_block, 2 * std::max({first_block / 2, reader.block_bytes, wanted}));
    std::vector<std::byte> bytes(std::min<std::uint64_t>(reader.block_bytes, size() - offset));
    {
      const std::scoped_lock lock(mutex_);
      reader.begin = std::max(reader.begin, reader.latest.begin());
      reader.end = offset + bytes.size();
    }
    file_->read_at(bytes, offset);
    reader.earlier = std::move(reader.latest);
    reader.latest = Block(offset, std::move(bytes));
  }

  std::unique_ptr<InputFile> file_;
  Location location_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<Reader>> readers_;  // the last one to have read stands last
};

}  // namespace

std::unique_ptr<InputFile> with_read_ahead(std::unique_ptr<InputFile> file, const Location& location) {
  return std::make_unique<ReadAhead>(std::move(file), location);
}

}  // namespace trireme::remote
