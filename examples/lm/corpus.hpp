#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "train.hpp"
#include "trireme/data/token_dataset.hpp"
#include "trireme/tokenizers/tokenizer.hpp"

struct Corpus {
  trireme::data::TokenDataset tokens;
  std::string content;  // in words
};

// The folder that the model came from; empty: none.
std::filesystem::path source_of(const LmRecipe& recipe);

// Of --tokenizer, else of the model's folder. Without one texts are bytes, and numbers have no text.
std::optional<trireme::tokenizers::Tokenizer> tokenizer_of(const LmRecipe& recipe);

// What --save takes along in place of the model's own tokenizer, if it was given: empty for bytes.
std::optional<std::filesystem::path> named_tokenizer(const LmRecipe& recipe);

Corpus read_corpus(const LmRecipe& recipe, const std::optional<trireme::tokenizers::Tokenizer>& tokenizer);

// That the model has all tokens.
void check_vocabulary(const LmRecipe& recipe, const trireme::data::TokenDataset& tokens, std::int64_t vocabulary);
