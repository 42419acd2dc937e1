#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::tokenizers {

// The tokens of words, the parts that a text has been cut into.
class Model {
 public:
  virtual ~Model() = default;

  // Appends the tokens of a word that is not empty, and, if `sizes` is there, how many of its bytes each of them takes.
  virtual void encode(std::string_view word, std::vector<std::int32_t>& tokens, std::vector<std::int32_t>* sizes) const = 0;
};

}  // namespace trireme::tokenizers
