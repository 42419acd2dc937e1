#pragma once

#include <vector>

#include "files/config_file.hpp"
#include "tokenizers/codecs/text_codec.hpp"
#include "trireme/files/location.hpp"

// Tokens that lie beside the vocabulary in JSON.
namespace trireme::tokenizers {

struct StoredToken {
  AddedToken token;
  bool is_normalized = false;  // found in normalized texts
};

// {"content": "<s>", "special": true, ...}, whose number stands elsewhere.
StoredToken read_added_token(const ConfigFile& object, std::int64_t number);

// Those of a folder: added_tokens_decoder of its tokenizer_config.json, else its added_tokens.json, as transformers reads them.
std::vector<StoredToken> folder_tokens(const Location& folder);

// Where texts are searched for it; `parts` has its normalizer. A content that is empty when it is normalized is an Error.
void add_token(const StoredToken& stored, TextCodecParts& parts);

// Those of the folder that `parts` lacks, each under its own number or as what the vocabulary has there.
void add_folder_tokens(const Location& folder, TextCodecParts& parts);

}  // namespace trireme::tokenizers
