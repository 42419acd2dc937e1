#include "data/sources/ranged_file.hpp"

#include <algorithm>

namespace trireme::data {

RangedFile::RangedFile(const Location& location) : file_(open_file(location)), size_(file_->size()) {
  if (!location.is_file_path()) return;
  mapped_ = file_->map();
  file_.reset();  // no descriptor is held for what is mapped
}

std::shared_ptr<const std::byte> RangedFile::range(std::uint64_t begin, std::size_t count) const {
  if (mapped_ || count == 0) return {mapped_, mapped_ ? mapped_.get() + begin : nullptr};
  const std::shared_ptr<std::byte[]> memory(new std::byte[count]);
  file_->read_at({memory.get(), count}, begin);
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

std::shared_ptr<OpenFiles::Slot> OpenFiles::slot(std::size_t index) const {
  constexpr std::size_t most_open = 512;
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<Slot>& slot = slots_[index];
  if (slot == nullptr) {
    slot = std::make_shared<Slot>();
    order_.push_back(index);
    if (order_.size() > most_open) {
      const std::size_t oldest = order_.front();
      order_.pop_front();
      std::shared_ptr<Slot> kept = slot;
      slots_.erase(oldest);
      return kept;
    }
  }
  return slot;
}

std::shared_ptr<const RangedFile> OpenFiles::file(std::size_t index) const {
  const std::shared_ptr<Slot> slot = this->slot(index);
  const std::scoped_lock lock(slot->mutex);
  if (slot->file == nullptr) slot->file = std::make_shared<const RangedFile>(locations_[index]);
  return slot->file;
}

}  // namespace trireme::data
