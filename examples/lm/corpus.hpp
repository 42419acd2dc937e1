#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "recipe.hpp"
#include "trireme/data/documents/conversations.hpp"
#include "trireme/data/text/mask_tokens.hpp"
#include "trireme/data/text/token_dataset.hpp"
#include "trireme/files/location.hpp"
#include "trireme/tokenizers/codecs/tokenizer.hpp"

struct Corpus {
  trireme::data::TokenDataset tokens;
  std::string content;  // a digest of the data; empty: describe the file itself
};

struct Answers {
  trireme::data::EncodedConversations training;
  trireme::data::EncodedConversations validation;  // may be empty
  std::string content;
  std::string chat_template = {};  // to be written to the folder of --save
};

// Masks tokens of windows and adds special tokens around them, for a model that fills in masked tokens.
struct Masking {
  trireme::data::MaskingOptions options;
  std::vector<std::int32_t> before, after;  // [CLS] and [SEP], if the tokenizer has them

  std::int64_t num_around() const { return std::ssize(before) + std::ssize(after); }
  trireme::data::TextBatch operator()(const trireme::data::TokenBatch& windows) const;
};

// The folder from which the model was loaded; empty: none.
trireme::Location source_of(const LmRecipe& recipe);

// The tokenizer of --tokenizer, else of the model's folder. Without one text is read as bytes, and number tokens have no text.
std::optional<trireme::tokenizers::Tokenizer> tokenizer_of(const LmRecipe& recipe);

// The tokenizer that --save writes in place of the model's own, if one was given; empty for bytes.
std::optional<trireme::Location> named_tokenizer(const LmRecipe& recipe);

Corpus read_corpus(const LmRecipe& recipe, const std::optional<trireme::tokenizers::Tokenizer>& tokenizer);

// Reads conversations and encodes them by --chat-template; the last ones are for validation.
Answers read_answers(const LmRecipe& recipe, const trireme::tokenizers::Tokenizer& tokenizer);

// The masking with the special tokens of the tokenizer; for bytes the mask is byte 0.
Masking masking_of(const LmRecipe& recipe, std::optional<trireme::tokenizers::Tokenizer> tokenizer, std::int64_t vocabulary,
                   std::uint64_t seed);

// Throws if the tokens do not fit the model's vocabulary.
void check_vocabulary(const LmRecipe& recipe, const trireme::data::TokenDataset& tokens, std::int64_t vocabulary);
void check_vocabulary(const LmRecipe& recipe, const trireme::data::Documents& documents, std::int64_t vocabulary);
