#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizers/codecs/token_spellings.hpp"
#include "trireme/core/range.hpp"

namespace trireme::tokenizers {

// A token that is searched in texts before the model encodes the rest.
struct AddedToken {
  std::string content;
  std::int32_t number = 0;
  bool is_special = false;
  bool strips_left = false;  // includes the white space before it
  bool strips_right = false;
};

// Finds added tokens in a text: the leftmost match, and the longest at that place.
class AddedTokenFinder {
 public:
  void add(const AddedToken& token);

  // From left to right, calls token(Range, AddedToken) for each token and text(Range) for the text between them. With
  // `with_special` false, special tokens count as text.
  template <typename Text, typename Token>
  void split(std::string_view whole, bool with_special, const Text& text, const Token& token) const {
    std::int64_t done = 0;
    const auto size = static_cast<std::int64_t>(whole.size());
    if (!first_bytes_.empty()) {
      for (Found found = next(whole, 0); found.token != nullptr; found = next(whole, static_cast<std::size_t>(found.end))) {
        if (found.token->is_special && !with_special) continue;
        const Range place = widened(whole, found, done);
        if (place.begin >= place.end) continue;  // the previous token included it
        if (place.begin > done) text(Range{.begin = done, .end = place.begin});
        token(place, *found.token);
        done = place.end;
      }
    }
    if (done < size) text(Range{.begin = done, .end = size});
  }

 private:
  struct Found {
    const AddedToken* token = nullptr;
    std::int64_t begin = 0, end = 0;
  };
  Found next(std::string_view whole, std::size_t from) const;
  std::size_t next_first_byte(std::string_view whole, std::size_t from) const;
  static Range widened(std::string_view whole, const Found& found, std::int64_t done);

  // The tokens with the same first byte.
  struct Group {
    std::vector<std::size_t> lengths;  // longest first
    std::unordered_map<std::string, AddedToken, HashOfText, std::equal_to<>> tokens;
  };
  std::array<Group, 256> groups_{};
  std::string first_bytes_;
};

}  // namespace trireme::tokenizers
