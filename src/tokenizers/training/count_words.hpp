#pragma once

#include <cstdint>
#include <memory>

#include "tokenizers/text/word_splitter.hpp"
#include "tokenizers/training/text_source.hpp"
#include "tokenizers/training/word_counts.hpp"

namespace trireme::tokenizers {

struct CountedWords {
  std::unique_ptr<SharedWordCounts> counts = std::make_unique<SharedWordCounts>();
  std::int64_t texts = 0, skipped_texts = 0, bytes = 0, words = 0;
};

// Splits all texts into words on `threads` threads. Of several errors, throws the one that is first in the texts.
CountedWords count_words(TextSource& source, const WordSplitter& splitter, bool skip_invalid, int threads);

}  // namespace trireme::tokenizers
