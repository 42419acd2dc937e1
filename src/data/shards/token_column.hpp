#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "trireme/files/digest.hpp"
#include "trireme/files/file_system.hpp"
#include "trireme/files/safetensors.hpp"

// The tensors of token shards, and what their metadata say of the content.
namespace trireme::data {

// The elements of a tensor with one dimension, read from a mapped file or in parts.
class Column {
 public:
  Column() = default;
  Column(const SafetensorsEntry& entry, std::shared_ptr<const std::byte> mapped, const InputFile* file)
      : dtype_(entry.dtype), size_(entry.shape.numel()), begin_(entry.begin), mapped_(std::move(mapped)), file_(file) {}

  std::int64_t size() const { return size_; }

  // The caller has checked that they are there.
  void read(std::int64_t first, std::span<std::byte> into) const {
    const std::uint64_t offset = begin_ + static_cast<std::uint64_t>(first) * size_of(dtype_);
    if (mapped_) {
      std::memcpy(into.data(), mapped_.get() + offset, into.size());
    } else if (!into.empty()) {
      file_->read_at(into, offset);
    }
  }
  template <typename T>
  T at(std::int64_t index) const {
    T value{};
    read(index, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

 private:
  DType dtype_ = DType::uint8;
  std::int64_t size_ = 0;
  std::uint64_t begin_ = 0;
  std::shared_ptr<const std::byte> mapped_;
  const InputFile* file_ = nullptr;
};

// What digest_of_bytes() gives of all elements, of which parts are added in turn; all but the last have whole words.
class ColumnDigest {
 public:
  template <typename T>
  void add(std::span<const T> values) {
    const std::span<const std::byte> bytes = std::as_bytes(values);
    const auto words = static_cast<std::int64_t>(bytes.size() / 8);
    const std::span<const std::byte> rest = bytes.subspan(static_cast<std::size_t>(words) * 8);
    sum_ += digest("data", DType::uint64, bytes.data(), words, words_);
    words_ += words;
    sum_ += digest("data", DType::uint8, rest.data(), std::ssize(rest), words_);
  }
  std::uint64_t value() const { return sum_; }

 private:
  std::uint64_t sum_ = 0;
  std::int64_t words_ = 0;
};

inline std::string digest_text(std::int64_t num_tokens, std::uint64_t tokens, std::uint64_t ends, std::uint64_t sources) {
  return fmt::format("{} tokens, {:016x}", num_tokens, 31 * (31 * tokens + ends) + sources);
}

// As digest_text() writes it: others may mean something else by a digest.
inline bool is_digest_text(std::string_view text) {
  constexpr std::string_view middle = " tokens, ";
  const std::size_t at = text.find(middle);
  return at != text.npos && at > 0 && text.substr(0, at).find_first_not_of("0123456789") == text.npos &&
         text.size() == at + middle.size() + 16 &&
         text.substr(at + middle.size()).find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace trireme::data
