#include "tokenizers/files/tokenizer_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tokenizers/files/folder_tokens.hpp"
#include "tokenizers/files/json_parts.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tokenizers {
namespace {

// Adds all tokens that are searched for in texts.
void add_tokens(const ConfigFile& file, TextCodecParts& to) {
  for (const ConfigFile& each : file.objects("added_tokens")) {
    const std::int64_t number = each.integer("id", 0);
    if (number >= 1 << 24) each.refuse("id", "a number below 2^24");
    const StoredToken stored = read_added_token(each, number);
    const AddedToken& token = stored.token;
    const auto known = to.spellings->find(token.content);
    const bool is_other = known ? *known != token.number : to.spellings->has(token.number);
    if (is_other) each.refuse("id", "the number that the vocabulary has for the token");
    if (token.content.empty()) continue;
    const auto has_number = [&](const AddedToken& other) { return other.number == token.number; };
    if (std::ranges::any_of(to.added, has_number)) each.refuse("id", "a number that no other added token has");
    add_token(stored, to);
  }
}

void check_template(const ConfigFile& file, const TextTemplate& pieces, const TextCodecParts& parts) {
  for (const TemplatePiece& piece : pieces) {
    for (const std::int32_t number : piece.tokens) {
      const auto has_number = [number](const AddedToken& token) { return token.number == number; };
      if (parts.spellings->has(number) || std::ranges::any_of(parts.added, has_number)) continue;
      file.refuse("post_processor", fmt::format("tokens of the vocabulary: {} is no token", number));
    }
  }
}

}  // namespace

std::shared_ptr<const detail::Codec> read_tokenizer_json(const Location& path) {
  const ConfigFile file(path, "a tokenizer");
  TextCodecParts parts;
  // Truncation and padding are up to the caller.
  file.ignore({"version", "truncation", "padding"});
  PreTokenizerParts cutting;
  if (file.has("pre_tokenizer")) cutting = read_pre_tokenizer(ConfigFile(file, "pre_tokenizer"));
  ModelParts model = read_model(ConfigFile(file, "model"), cutting.is_byte_level);
  parts.spellings = std::move(model.spellings);
  parts.texts = std::move(model.texts);
  parts.model = std::move(model.model);
  parts.splitter = std::move(cutting.splitter);
  if (parts.splitter.is_empty() && !model.sign_between_words.empty()) {
    parts.splitter.add(SplitBefore{.begin = model.sign_between_words, .runs = true});
  }
  parts.at_begin = std::move(cutting.at_begin);
  parts.later = std::move(cutting.later);
  if (file.has("normalizer")) parts.normalizer = read_normalizer(ConfigFile(file, "normalizer"));
  add_tokens(file, parts);
  if (file.has("post_processor")) read_post_processor(ConfigFile(file, "post_processor"), parts);
  check_template(file, parts.single, parts);
  check_template(file, parts.pair, parts);
  if (file.has("decoder")) {
    parts.decoder = read_decoder(ConfigFile(file, "decoder"));
  } else {
    parts.decoder.spaces_between = true;
  }
  file.refuse_unknown();
  return std::make_shared<TextCodec>(std::move(parts));
}

}  // namespace trireme::tokenizers
