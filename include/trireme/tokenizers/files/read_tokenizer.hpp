#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"
#include "trireme/tokenizers/codecs/tokenizer.hpp"
#include "trireme/tokenizers/text/patterns.hpp"

namespace trireme TRIREME_EXPORT {
namespace tokenizers {

// Reads the tokenizer of a model's folder, or a single tokenizer file. In a folder it takes the first of these files:
// tokenizer.json (Hugging Face), tokenizer.model (sentencepiece), vocab.txt (BERT), vocab.json and merges.txt (GPT-2). If
// there is no tokenizer.json, read_tokenizer() also reads the folder's added tokens, from added_tokens_decoder in
// tokenizer_config.json or from added_tokens.json.
//
// A tokenizer.json may have these parts. For any other kind or option, throws Error with its name.
// - models: BPE and WordPiece, byte-level or with byte fallback
// - normalizers: BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Prepend, Replace, Sequence
// - pre-tokenizers: BertPreTokenizer, ByteLevel, Digits, Metaspace, Sequence, Split
// - post-processors: BertProcessing, ByteLevel, RobertaProcessing, Sequence, TemplateProcessing
// - the decoders that belong to these
Tokenizer read_tokenizer(const Location& path);

// Whether a folder has one of these files. Throws Error if the folder has only files of unsupported tokenizers.
bool has_tokenizer(const Location& folder);

struct TiktokenOptions {
  std::string pattern = patterns::cl100k;
  std::map<std::string, std::int32_t> special_tokens = {};  // the number of each token
};

// Reads a tiktoken file: each line has a token in base64 and its number, which is also its rank in merging.
Tokenizer read_tiktoken(const Location& path, const TiktokenOptions& options = {});

// Reads GPT-2's vocab.json and merges.txt, which may have other names.
Tokenizer read_gpt2(const Location& vocabulary, const Location& merges);

}  // namespace tokenizers
}  // namespace trireme
