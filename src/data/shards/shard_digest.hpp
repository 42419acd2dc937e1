#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "trireme/files/digest.hpp"

// The digest of a token shard's content in its metadata.
namespace trireme::data {

// Computes digest_of_bytes() of all elements, which are added in parts. All parts but the last have whole words.
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

// Whether digest_text() wrote it. Other programs may mean something else by "digest".
inline bool is_digest_text(std::string_view text) {
  constexpr std::string_view middle = " tokens, ";
  const std::size_t at = text.find(middle);
  return at != text.npos && at > 0 && text.substr(0, at).find_first_not_of("0123456789") == text.npos &&
         text.size() == at + middle.size() + 16 &&
         text.substr(at + middle.size()).find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace trireme::data
