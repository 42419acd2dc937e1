#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace trireme::tokenizers {

struct HashOfText {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using NumberByText = std::unordered_map<std::string, std::int32_t, HashOfText, std::equal_to<>>;

// The tokens of a vocabulary: a text for each number from 0 on; some numbers may be missing.
class TokenSpellings {
 public:
  explicit TokenSpellings(std::size_t count) : count_(static_cast<std::int64_t>(count)) {}  // the expected number of tokens

  // Throws Error for a text or number that exists already.
  void add(std::string text, std::int64_t number);

  std::int64_t size() const { return static_cast<std::int64_t>(texts_.size()); }  // the largest number + 1
  std::optional<std::int32_t> find(std::string_view text) const;
  bool has(std::int64_t number) const { return number >= 0 && number < size() && has_[static_cast<std::size_t>(number)]; }
  const std::string& text(std::int32_t number) const { return texts_[static_cast<std::size_t>(number)]; }

 private:
  std::int64_t count_;
  std::vector<std::string> texts_;
  std::vector<bool> has_;
  NumberByText numbers_;
};

}  // namespace trireme::tokenizers
