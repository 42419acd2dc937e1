#include "trireme/data/tokenizer.hpp"

#include "trireme/core/error.hpp"

namespace trireme::data {

std::vector<std::int32_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for (const char character : text) tokens.push_back(static_cast<unsigned char>(character));
  return tokens;
}

std::string ByteTokenizer::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  text.reserve(tokens.size());
  for (const std::int32_t token : tokens) {
    require(token >= 0 && token < vocabulary_size, "the token {} is not a byte", token);
    text += static_cast<char>(token);
  }
  return text;
}

}  // namespace trireme::data
