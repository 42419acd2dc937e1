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
  std::string content;  // in words; empty: that of the file
};

struct Answers {
  trireme::data::EncodedConversations training;
  trireme::data::EncodedConversations validation;  // maybe none
  std::string content;
  std::string chat_template = {};  // for the folder of --save, which has none otherwise
};

// What is put around the windows of a text for a model that fills in masked tokens.
struct Masking {
  trireme::data::MaskingOptions options;
  std::vector<std::int32_t> before, after;  // [CLS] and [SEP], where there are such tokens

  std::int64_t num_around() const { return std::ssize(before) + std::ssize(after); }
  trireme::data::TextBatch operator()(const trireme::data::TokenBatch& windows) const;
};

// The folder that the model came from; empty: none.
trireme::Location source_of(const LmRecipe& recipe);

// Of --tokenizer, else of the model's folder. Without one texts are bytes, and numbers have no text.
std::optional<trireme::tokenizers::Tokenizer> tokenizer_of(const LmRecipe& recipe);

// What --save takes along in place of the model's own tokenizer, if it was given: empty for bytes.
std::optional<trireme::Location> named_tokenizer(const LmRecipe& recipe);

Corpus read_corpus(const LmRecipe& recipe, const std::optional<trireme::tokenizers::Tokenizer>& tokenizer);

// Conversations by --chat-template, the last ones for validation.
Answers read_answers(const LmRecipe& recipe, const trireme::tokenizers::Tokenizer& tokenizer);

// By the tokenizer, else that of the model's folder. Of bytes, 0 hides others.
Masking masking_of(const LmRecipe& recipe, std::optional<trireme::tokenizers::Tokenizer> tokenizer, std::int64_t vocabulary,
                   std::uint64_t seed);

// That the model has all tokens.
void check_vocabulary(const LmRecipe& recipe, const trireme::data::TokenDataset& tokens, std::int64_t vocabulary);
void check_vocabulary(const LmRecipe& recipe, const trireme::data::Documents& documents, std::int64_t vocabulary);
