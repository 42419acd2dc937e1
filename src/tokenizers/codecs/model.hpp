#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizers/codecs/word_cache.hpp"
#include "trireme/core/range.hpp"

namespace trireme::tokenizers {

// Encodes words, the parts that a text is split into.
class Model {
 public:
  static constexpr std::size_t most_words = 32;

  Model();
  virtual ~Model() = default;

  // Appends the tokens of at most most_words words, none of them empty. Those of recent words are kept in a cache of the
  // thread.
  void encode(std::string_view text, std::span<const Range> words, std::vector<std::int32_t>& tokens) const;

  // Appends the tokens of one word. With `sizes`, also appends the bytes that each token covers; they add up to the word's
  // bytes.
  virtual void encode_word(std::string_view word, std::vector<std::int32_t>& tokens,
                           std::vector<std::int32_t>* sizes) const = 0;

 private:
  // Prefetches what encode_word() will need soon.
  virtual void fetch(std::string_view) const {}
  // Encodes a word that is too long for the cache's short ones, or has too many tokens for them.
  void encode_long(std::string_view word, WordCache::Long& entries, std::vector<std::int32_t>& tokens) const;

  std::uint32_t number_;  // identifies this model in the process
};

}  // namespace trireme::tokenizers
