#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tokenizers/codecs/token_spellings.hpp"
#include "tokenizers/training/word_counts.hpp"
#include "trireme/tokenizers/training/train_bpe.hpp"

namespace trireme::tokenizers {

struct LearntMerges {
  TokenSpellings tokens;  // spelled as in tokenizer.json
  std::vector<std::pair<std::int32_t, std::int32_t>> merges;
};

// Uses up the counts.
LearntMerges learn_merges(SharedWordCounts& words, const BpeTrainingOptions& options);

}  // namespace trireme::tokenizers
