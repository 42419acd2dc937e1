#pragma once

#include <vector>

#include "files/config_file.hpp"
#include "tokenizers/codecs/text_codec.hpp"
#include "trireme/files/location.hpp"

// Added tokens, which JSON files list apart from the vocabulary.
namespace trireme::tokenizers {

struct StoredToken {
  AddedToken token;
  bool is_normalized = false;  // searched in normalized text
};

// Reads {"content": "<s>", "special": true, ...}; its number comes from elsewhere.
StoredToken read_added_token(const ConfigFile& object, std::int64_t number);

// Reads a folder's added tokens as transformers does: added_tokens_decoder in tokenizer_config.json, or else added_tokens.json.
std::vector<StoredToken> folder_tokens(const Location& folder);

// Adds a token to search for; `parts` must have its normalizer. Throws Error if the token is empty after normalization.
void add_token(const StoredToken& stored, TextCodecParts& parts);

// Adds the folder's tokens with numbers that no added token of `parts` has.
void add_folder_tokens(const Location& folder, TextCodecParts& parts);

}  // namespace trireme::tokenizers
