#include <fmt/format.h>

#include <utility>

#include "tokenizers/codecs/bpe.hpp"
#include "tokenizers/codecs/wordpiece.hpp"
#include "tokenizers/files/json_parts.hpp"
#include "tokenizers/text/byte_level.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tokenizers {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error({.code = ErrorCode::corrupt_file, .message = fmt::format("a tokenizer's {}", what), .path = path});
}

struct Vocabulary {
  std::shared_ptr<TokenSpellings> spellings;
  std::shared_ptr<TokenSpellings> texts;
};

// {"token": number, ...}
Vocabulary read_vocabulary(const nlohmann::json& vocabulary, bool is_byte_level, const std::string& path) {
  Vocabulary result;
  if (!vocabulary.is_object() || vocabulary.empty()) refuse(path, "vocabulary is no object of tokens and their numbers");
  result.spellings = std::make_shared<TokenSpellings>(vocabulary.size());
  result.texts = is_byte_level ? std::make_shared<TokenSpellings>(vocabulary.size()) : result.spellings;
  for (const auto& [token, number] : vocabulary.items()) {
    if (!number.is_number_integer()) refuse(path, fmt::format("vocabulary has no number for the token \"{}\"", token));
    try {
      result.spellings->add(token, number.get<std::int64_t>());
      if (!is_byte_level) continue;
      if (auto bytes = bytes_of_spelling(token)) result.texts->add(*std::move(bytes), number.get<std::int64_t>());
    } catch (const Error& error) {
      refuse(path, fmt::format("vocabulary is wrong: {}", error.what()));
    }
  }
  return result;
}

// ["a b", ...] or [["a", "b"], ...]
std::pair<std::string, std::string> sides_of(const nlohmann::json& merge, std::size_t number, const std::string& path) {
  const bool is_pair = merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
  if (is_pair) return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  const std::string text = merge.is_string() ? merge.get<std::string>() : "";
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    refuse(path, fmt::format("merge {} is no pair of tokens", number));
  }
  return {text.substr(0, space), text.substr(space + 1)};
}

Merges read_merges(const nlohmann::json& merges, const TokenSpellings& spellings, const std::string& path) {
  if (!merges.is_array()) refuse(path, "merges are no list");
  Merges result(merges.size());
  std::int32_t rank = 0;
  for (const auto& merge : merges) {
    const auto sides = sides_of(merge, static_cast<std::size_t>(rank), path);
    const auto number_of = [&](const std::string& token) {
      const auto number = spellings.find(token);
      if (!number) refuse(path, fmt::format("merge {} needs the token \"{}\", which its vocabulary lacks", rank, token));
      return *number;
    };
    const std::int32_t left = number_of(sides.first), right = number_of(sides.second);
    result.add(left, right, {.rank = rank, .token = number_of(sides.first + sides.second)});
    ++rank;
  }
  return result;
}

constexpr std::string_view sign_of_space = "\xE2\x96\x81";

// Whether tokens have the sign for spaces only at their begin.
bool keeps_words_apart(const TokenSpellings& tokens) {
  for (std::int32_t token = 0; token < tokens.size(); ++token) {
    if (!tokens.has(token)) continue;
    std::string_view text = tokens.text(token);
    while (text.starts_with(sign_of_space)) text.remove_prefix(sign_of_space.size());
    if (text.find(sign_of_space) != std::string_view::npos) return false;
  }
  return tokens.find(sign_of_space).has_value();
}

ModelParts bpe(const Vocabulary& vocabulary, const nlohmann::json& merges, const BpeOptions& options, const std::string& path) {
  return {.spellings = vocabulary.spellings,
          .texts = vocabulary.texts,
          .model = std::make_shared<Bpe>(vocabulary.texts, read_merges(merges, *vocabulary.spellings, path), options),
          .sign_between_words = std::string(
              !options.byte_level && !options.ignore_merges && keeps_words_apart(*vocabulary.spellings) ? sign_of_space : "")};
}

}  // namespace

ModelParts byte_level_bpe(const nlohmann::json& vocabulary, const nlohmann::json& merges, const std::string& path) {
  return bpe(read_vocabulary(vocabulary, true, path), merges, {.byte_level = true}, path);
}

ModelParts read_model(const ConfigFile& part, bool is_byte_level) {
  const auto found = [&](const char* key) -> const nlohmann::json& {
    const nlohmann::json* value = part.value(key);
    if (value == nullptr) part.refuse(key, "the tokens of the model");
    return *value;
  };
  const std::string type = part.text_or("type", part.has("merges") ? "BPE" : "WordPiece");
  if (type != "BPE" && type != "WordPiece") part.refuse("type", "BPE or WordPiece");
  const Vocabulary vocabulary = read_vocabulary(found("vocab"), is_byte_level, part.path());
  if (type == "WordPiece") {
    if (is_byte_level) part.refuse("type", "BPE behind a byte-level pre-tokenizer");
    const WordPieceOptions options{.unknown = part.text_or("unk_token", "[UNK]"),
                                   .continuing_prefix = part.text_or("continuing_subword_prefix", "##"),
                                   .most_characters = part.integer_or("max_input_chars_per_word", 100)};
    if (options.most_characters > 10'000) part.refuse("max_input_chars_per_word", "at most 10,000");
    part.refuse_unknown();
    if (!vocabulary.spellings->find(options.unknown)) part.refuse("unk_token", "a token of the vocabulary");
    return {.spellings = vocabulary.spellings,
            .texts = vocabulary.texts,
            .model = std::make_shared<WordPiece>(vocabulary.spellings, options)};
  }
  BpeOptions options{.byte_level = is_byte_level,
                     .ignore_merges = part.flag_or("ignore_merges", false),
                     .fuse_unknown = part.flag_or("fuse_unk", false),
                     .byte_fallback = part.flag_or("byte_fallback", false)};
  if (part.has("unk_token")) {
    options.unknown = vocabulary.spellings->find(part.text("unk_token"));  // none: encoding throws where it is needed
  }
  if (options.byte_fallback) {
    std::size_t bytes = 0;
    for (int byte = 0; byte < 256; ++byte) bytes += vocabulary.spellings->find(fmt::format("<0x{:02X}>", byte)) ? 1 : 0;
    if (is_byte_level || bytes != 256)
      part.refuse("byte_fallback", "false, as not all of <0x00> to <0xFF> are there to be used");
  }
  if (part.number_or("dropout", 0) != 0) part.refuse("dropout", "none: the same text gives the same tokens");
  for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!part.text_or(key, "").empty()) part.refuse(key, "none");
  }
  const nlohmann::json& merges = found("merges");
  part.refuse_unknown();
  return bpe(vocabulary, merges, options, part.path());
}

}  // namespace trireme::tokenizers
