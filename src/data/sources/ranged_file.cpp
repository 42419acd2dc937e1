#include "data/sources/ranged_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "trireme/core/error.hpp"
#include "trireme/files/file_content.hpp"
#include "trireme/files/file_memory.hpp"

namespace trireme::data {
namespace {

constexpr std::size_t most_open = 512;

}  // namespace

RangedFile::RangedFile(const Location& location)
    : location_(location), file_(open_file(location)), size_(file_->size()), version_(file_->version()) {
  if (location.is_file_path()) mapped();
}

std::shared_ptr<const InputFile> RangedFile::file() const {
  const std::scoped_lock lock(mutex_);
  return file_;
}

void RangedFile::close() const {
  const std::scoped_lock lock(mutex_);
  file_.reset();
}

const std::byte* RangedFile::mapped() const {
  if (const std::byte* const memory = memory_.load()) return memory;
  std::call_once(once_, [this] {
    const std::shared_ptr<const InputFile> file = this->file();
    if (size_ > 0 && !file->maps_from_disk()) return;
    mapped_ = file->map();
    memory_ = mapped_.get();
    close();
  });
  return mapped_.get();
}

void RangedFile::read_at(std::span<std::byte> into, std::uint64_t offset) const {
  if (offset > size_ || into.size() > size_ - offset) {
    throw Error({.code = ErrorCode::corrupt_file,
                 .message = fmt::format("the file ends at byte {}, {} bytes from {} on are needed", size_, into.size(), offset),
                 .path = location_.string()});
  }
  if (into.empty()) return;
  if (const auto file = this->file()) return file->read_at(into, offset);
  std::memcpy(into.data(), mapped() + offset, into.size());
}

std::shared_ptr<const std::byte> RangedFile::range(std::uint64_t begin, std::size_t count) const {
  if (mapped() != nullptr) return {mapped_, mapped_.get() + begin};
  if (count == 0) return nullptr;
  const std::shared_ptr<std::byte[]> memory = memory_for(count, location_);
  file()->read_at({memory.get(), count}, begin);
  return {memory, memory.get()};
}

std::span<const std::byte> ByteWindow::bytes(std::uint64_t begin, std::size_t count) {
  if (begin < begin_ || begin + count > begin_ + size_) {
    const std::uint64_t rest = file_.size() - begin;
    size_ = static_cast<std::size_t>(std::min<std::uint64_t>(rest, std::max(count, least_)));
    memory_ = file_.range(begin, size_);
    begin_ = begin;
  }
  return {memory_.get() + (begin - begin_), count};
}

std::shared_ptr<const RangedFile> OpenFiles::open(std::size_t index, Slot& slot) const {
  const Location& location = locations_[index];
  auto file = std::make_shared<const RangedFile>(location);
  const std::string version = file->version();
  const Seen now{.bytes = file->size(), .version = digest_of_bytes(std::as_bytes(std::span(version)))};
  if (!slot.seen) slot.seen = now;
  if (slot.seen->bytes == now.bytes && slot.seen->version == now.version) return file;
  throw Error({.code = ErrorCode::corrupt_file,
               .message = "the file is not the one that was looked through",
               .path = location.string(),
               .wanted = fmt::format("{} bytes", slot.seen->bytes),
               .had = slot.seen->bytes == now.bytes ? "as many, of another version" : fmt::format("{} bytes", now.bytes),
               .hint = "files may not change while they are read: begin again"});
}

std::shared_ptr<const RangedFile> OpenFiles::open(std::size_t index) const {
  Slot& slot = slots_[index];
  const std::scoped_lock lock(slot.mutex);
  return open(index, slot);
}

std::shared_ptr<const RangedFile> OpenFiles::file(std::size_t index) const {
  Slot& slot = slots_[index];
  // Neither a lock nor a count that threads would share.
  if (const RangedFile* const stays = slot.stays.load()) return {std::shared_ptr<const RangedFile>(), stays};
  const bool none_is_closed = slots_.size() <= most_open;
  std::shared_ptr<const RangedFile> file;
  {
    const std::scoped_lock lock(slot.mutex);
    if (slot.file != nullptr) return slot.file;
    file = slot.file = open(index, slot);
    if (none_is_closed) slot.stays = file.get();
  }
  if (!none_is_closed) close_oldest(index);
  return file;
}

void OpenFiles::close_oldest(std::size_t opened) const {
  std::size_t oldest = 0;
  {
    const std::scoped_lock lock(mutex_);
    order_.push_back(opened);
    if (order_.size() <= most_open) return;
    oldest = order_.front();
    order_.pop_front();
  }
  std::shared_ptr<const RangedFile> closed;  // behind the lock: who reads it goes on
  const std::scoped_lock lock(slots_[oldest].mutex);
  closed = std::move(slots_[oldest].file);
}

}  // namespace trireme::data
