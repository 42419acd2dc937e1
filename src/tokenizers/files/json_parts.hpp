#pragma once

#include <memory>
#include <string>

#include "files/config_file.hpp"
#include "tokenizers/codecs/text_codec.hpp"

// Readers for the parts of a tokenizer.json, each an object with a "type". They throw Error with the name of what is not
// supported.
namespace trireme::tokenizers {

std::shared_ptr<const Normalizer> read_normalizer(const ConfigFile& part);

// How texts are split into words.
struct PreTokenizerParts {
  WordSplitter splitter;
  std::shared_ptr<const Normalizer> at_begin;
  std::shared_ptr<const Normalizer> later;
  bool is_byte_level = false;
};
PreTokenizerParts read_pre_tokenizer(const ConfigFile& part);

// The model, and the vocabulary as spellings and as the bytes that they stand for.
struct ModelParts {
  std::shared_ptr<const TokenSpellings> spellings;
  std::shared_ptr<const TokenSpellings> texts;
  std::shared_ptr<const Model> model;
  // If not empty, no token spans the place before this text (but may span a run of them). So words that begin with it can be
  // encoded separately.
  std::string sign_between_words = {};
};
ModelParts read_model(const ConfigFile& part, bool is_byte_level);
// BPE from a vocab.json and the lines of a merges.txt.
ModelParts byte_level_bpe(const nlohmann::json& vocabulary, const nlohmann::json& merges, const std::string& path);

void read_post_processor(const ConfigFile& part, TextCodecParts& to);
DecoderOptions read_decoder(const ConfigFile& part);

}  // namespace trireme::tokenizers
