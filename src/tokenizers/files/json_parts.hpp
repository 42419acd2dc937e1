#pragma once

#include <memory>
#include <string>

#include "files/config_file.hpp"
#include "tokenizers/codecs/text_codec.hpp"

// The parts of a tokenizer.json, each an object with a "type". What a part asks for and nobody has is an Error that names it.
namespace trireme::tokenizers {

std::shared_ptr<const Normalizer> read_normalizer(const ConfigFile& part);

// How texts are cut into words.
struct PreTokenizerParts {
  WordSplitter splitter;
  std::shared_ptr<const Normalizer> at_begin;
  std::shared_ptr<const Normalizer> later;
  bool is_byte_level = false;
};
PreTokenizerParts read_pre_tokenizer(const ConfigFile& part);

// The vocabulary as it is spelled, and as the bytes that it stands for.
struct ModelParts {
  std::shared_ptr<const TokenSpellings> spellings;
  std::shared_ptr<const TokenSpellings> texts;
  std::shared_ptr<const Model> model;
  // If not empty: no token goes over the place before such a text, unless it follows another. So words that begin with it can
  // be encoded one by one.
  std::string sign_between_words = {};
};
ModelParts read_model(const ConfigFile& part, bool is_byte_level);
// BPE of a vocab.json and the lines of a merges.txt.
ModelParts byte_level_bpe(const nlohmann::json& vocabulary, const nlohmann::json& merges, const std::string& path);

void read_post_processor(const ConfigFile& part, TextCodecParts& to);
DecoderOptions read_decoder(const ConfigFile& part);

}  // namespace trireme::tokenizers
