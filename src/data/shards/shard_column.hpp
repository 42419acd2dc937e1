#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>

#include "data/sources/ranged_file.hpp"
#include "trireme/files/safetensors.hpp"

namespace trireme::data {

// The elements of a tensor with one dimension. `is_short`: of a file elsewhere all are read at once when the first is wanted,
// and kept.
class ShardColumn {
 public:
  ShardColumn(const SafetensorsEntry& entry, bool is_short)
      : element_(size_of(entry.dtype)), size_(entry.shape.numel()), begin_(entry.begin), is_short_(is_short) {}

  std::int64_t size() const { return size_; }

  // Null: the elements are read in parts.
  const std::byte* memory(const RangedFile& file, std::int64_t first) const {
    if (const std::byte* const mapped = file.mapped()) return mapped + place_of(first);
    if (!is_short_) return nullptr;
    std::call_once(once_, [&] { all_ = file.range(begin_, static_cast<std::size_t>(size_) * element_); });
    return all_.get() + (place_of(first) - begin_);
  }

  // The caller has checked that they are there.
  void read(const RangedFile& file, std::int64_t first, std::span<std::byte> into) const {
    if (into.empty()) return;
    if (const std::byte* const from = memory(file, first)) {
      std::memcpy(into.data(), from, into.size());
    } else {
      file.read_at(into, place_of(first));
    }
  }
  template <typename T>
  T at(const RangedFile& file, std::int64_t index) const {
    T value{};
    read(file, index, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  // The same without the others.
  template <typename T>
  T last(const RangedFile& file) const {
    T value{};
    file.read_at(std::as_writable_bytes(std::span(&value, 1)), place_of(size_ - 1));
    return value;
  }

 private:
  std::uint64_t place_of(std::int64_t index) const { return begin_ + static_cast<std::uint64_t>(index) * element_; }

  std::size_t element_;  // bytes
  std::int64_t size_;
  std::uint64_t begin_;  // in the file
  bool is_short_;
  mutable std::once_flag once_;
  mutable std::shared_ptr<const std::byte> all_;
};

}  // namespace trireme::data
