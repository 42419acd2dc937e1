#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"
#include "trireme/tokenizers/codecs/tokenizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace tokenizers {

// The tokenizer of a model's folder, or a file of one: tokenizer.json of Hugging Face, else tokenizer.model of sentencepiece,
// else vocab.txt of BERT, else vocab.json and merges.txt of GPT-2. Tokens that the folder adds, by added_tokens_decoder of its
// tokenizer_config.json or by added_tokens.json, belong to those without tokenizer.json, which has them.
//
// Of tokenizer.json: BPE and WordPiece models, byte-level or with byte fallback; the normalizers BertNormalizer, Lowercase,
// NFC, NFD, NFKC, NFKD, Prepend, Replace, Sequence; the pre-tokenizers BertPreTokenizer, ByteLevel, Digits,
// Metaspace, Sequence, Split; the post-processors BertProcessing, ByteLevel, RobertaProcessing, Sequence, TemplateProcessing;
// the decoders of these. Any other kind or option is an Error that names it.
Tokenizer read_tokenizer(const Location& path);

// Whether a folder has one of these files. One with files of another tokenizer is an Error that names the first of them.
bool has_tokenizer(const Location& folder);

// How texts are split before bytes are merged: the regular expressions of known tokenizers.
namespace patterns {
inline constexpr const char* gpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// Of GPT-4's cl100k_base and Llama 3.
inline constexpr const char* cl100k =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr const char* qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}  // namespace patterns

struct TiktokenOptions {
  std::string pattern = patterns::cl100k;
  std::map<std::string, std::int32_t> special_tokens = {};  // number of each
};

// A file of tiktoken: lines of a token in base64 and its number, by which pairs are merged.
Tokenizer read_tiktoken(const Location& path, const TiktokenOptions& options = {});

// A vocab.json and merges.txt of GPT-2, also under other names.
Tokenizer read_gpt2(const Location& vocabulary, const Location& merges);

}  // namespace tokenizers
}  // namespace trireme
