#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trireme/core/range.hpp"

namespace trireme::tokenizers {

// The tokens of words, the parts that a text has been cut into.
class Model {
 public:
  static constexpr std::size_t most_words = 32;

  virtual ~Model() = default;

  // Appends the tokens of at most most_words words, none of them empty, and, if `sizes` is there, how many bytes each of the
  // tokens takes: those of a word add up to it.
  virtual void encode(std::string_view text, std::span<const Range> words, std::vector<std::int32_t>& tokens,
                      std::vector<std::int32_t>* sizes) const = 0;
};

}  // namespace trireme::tokenizers
