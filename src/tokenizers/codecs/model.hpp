#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trireme/core/range.hpp"

namespace trireme::tokenizers {

// Encodes words, the parts that a text is split into.
class Model {
 public:
  static constexpr std::size_t most_words = 32;

  virtual ~Model() = default;

  // Appends the tokens of at most most_words words, none of them empty. With `sizes`, also appends the bytes that each token
  // covers; they add up to the word's bytes.
  virtual void encode(std::string_view text, std::span<const Range> words, std::vector<std::int32_t>& tokens,
                      std::vector<std::int32_t>* sizes) const = 0;
};

}  // namespace trireme::tokenizers
