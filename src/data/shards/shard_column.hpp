#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "trireme/files/file_system.hpp"
#include "trireme/files/safetensors.hpp"

namespace trireme::data {

// A file of this machine is mapped when it is opened, one that is fetched to the disk when its tokens are read.
class ShardFile {
 public:
  explicit ShardFile(const Location& location) : file_(open_file(location)), is_local_(location.is_file_path()) {}

  bool is_local() const { return is_local_; }
  bool reads_by_requests() const { return !file_->maps_from_disk(); }
  void read_at(std::span<std::byte> into, std::uint64_t offset) const { file_->read_at(into, offset); }
  const std::byte* mapped() const {  // null: it is read in parts
    if (!file_->maps_from_disk()) return nullptr;
    std::call_once(once_, [this] { mapped_ = file_->map(); });
    return mapped_.get();
  }

 private:
  std::unique_ptr<InputFile> file_;
  bool is_local_;
  mutable std::once_flag once_;
  mutable std::shared_ptr<const std::byte> mapped_;
};

// The elements of a tensor with one dimension. `is_short`: of a file elsewhere all are read at once, when the first is wanted.
class ShardColumn {
 public:
  ShardColumn(const SafetensorsEntry& entry, const ShardFile& file, bool is_short)
      : element_(size_of(entry.dtype)), size_(entry.shape.numel()), begin_(entry.begin), file_(&file), is_short_(is_short) {}

  std::int64_t size() const { return size_; }

  // Null: the elements are read in parts.
  const std::byte* memory(std::int64_t first) const {
    const std::uint64_t offset = static_cast<std::uint64_t>(first) * element_;
    if (is_short_ && !file_->is_local()) {
      std::call_once(once_, [this] {
        std::vector<std::byte> all(static_cast<std::size_t>(size_) * element_);
        file_->read_at(all, begin_);
        all_ = std::move(all);
      });
      return all_.data() + offset;
    }
    const std::byte* const mapped = file_->mapped();
    return mapped == nullptr ? nullptr : mapped + begin_ + offset;
  }

  // The caller has checked that they are there.
  void read(std::int64_t first, std::span<std::byte> into) const {
    if (into.empty()) return;
    if (const std::byte* const from = memory(first)) {
      std::memcpy(into.data(), from, into.size());
    } else {
      file_->read_at(into, begin_ + static_cast<std::uint64_t>(first) * element_);
    }
  }
  template <typename T>
  T at(std::int64_t index) const {
    T value{};
    read(index, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  // The same without the others.
  template <typename T>
  T last() const {
    T value{};
    file_->read_at(std::as_writable_bytes(std::span(&value, 1)), begin_ + static_cast<std::uint64_t>(size_ - 1) * element_);
    return value;
  }

 private:
  std::size_t element_;  // bytes
  std::int64_t size_;
  std::uint64_t begin_;
  const ShardFile* file_;
  bool is_short_;
  mutable std::once_flag once_;
  mutable std::vector<std::byte> all_;
};

}  // namespace trireme::data
