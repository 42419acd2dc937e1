#include "tokenizers/files/folder_tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "tokenizers/text/utf8.hpp"

namespace trireme::tokenizers {
namespace {

constexpr std::int64_t most_numbers = 1 << 24;
constexpr const char* about_config = "a tokenizer's config";

// {"32000": {"content": "<|im_end|>", ...}, ...}
std::vector<StoredToken> read_numbered_tokens(const ConfigFile& config, const char* key) {
  std::vector<StoredToken> tokens;
  const ConfigFile all(config, key);
  for (const std::string& number : all.keys()) {
    std::int64_t value = -1;
    const char* const end = number.data() + number.size();
    if (std::from_chars(number.data(), end, value).ptr != end || value < 0 || value >= most_numbers) {
      config.refuse(key, fmt::format("an object whose keys are numbers below 2^24, and not \"{}\"", shown(number)));
    }
    tokens.push_back(read_added_token(ConfigFile(all, number), value));
  }
  std::ranges::sort(tokens, {}, [](const StoredToken& stored) { return stored.token.number; });
  return tokens;
}

void add_texts(const nlohmann::json& value, std::set<std::string>& to) {
  if (value.is_string()) to.insert(value.get<std::string>());
  if (value.is_object() && value.contains("content") && value.at("content").is_string()) {
    to.insert(value.at("content").get<std::string>());
  }
  if (value.is_array()) {
    for (const auto& each : value) {
      if (!each.is_array()) add_texts(each, to);
    }
  }
}

// The folder's special tokens: bos_token and so on.
std::set<std::string> special_tokens(const Location& folder) {
  std::set<std::string> tokens;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    if (!is_there(folder / name)) continue;
    const ConfigFile config(folder / name, about_config);
    for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token",
                            "additional_special_tokens", "extra_special_tokens"}) {
      if (const nlohmann::json* value = config.value(key)) add_texts(*value, tokens);
    }
  }
  return tokens;
}

// {"<|im_end|>": 32000, ...}
std::vector<StoredToken> read_added_tokens(const Location& path) {
  const ConfigFile file(path, "a list of added tokens");
  const std::set<std::string> special = special_tokens(path.parent());
  std::vector<StoredToken> tokens;
  for (const std::string& content : file.keys()) {
    const std::int64_t number = file.integer(content, 0);
    if (content.empty() || number >= most_numbers) file.refuse(content, "a number below 2^24, of a token that is not empty");
    const bool is_special = special.contains(content);
    tokens.push_back({.token = {.content = content, .number = static_cast<std::int32_t>(number), .is_special = is_special},
                      .is_normalized = !is_special});
  }
  return tokens;
}

}  // namespace

StoredToken read_added_token(const ConfigFile& object, std::int64_t number) {
  StoredToken stored{.token = {.content = object.text("content"),
                               .number = static_cast<std::int32_t>(number),
                               .is_special = object.flag_or("special", false),
                               .strips_left = object.flag_or("lstrip", false),
                               .strips_right = object.flag_or("rstrip", false)}};
  stored.is_normalized = object.flag_or("normalized", !stored.token.is_special);
  if (object.flag_or("single_word", false)) object.refuse("single_word", "false");
  object.ignore({"__type"});
  object.refuse_unknown();
  return stored;
}

std::vector<StoredToken> folder_tokens(const Location& folder) {
  const Location config_path = folder / "tokenizer_config.json";
  constexpr const char* key = "added_tokens_decoder";
  if (is_there(config_path)) {
    const ConfigFile config(config_path, about_config);
    if (config.has(key)) return read_numbered_tokens(config, key);
  }
  const Location list = folder / "added_tokens.json";
  return is_there(list) ? read_added_tokens(list) : std::vector<StoredToken>{};
}

void add_token(const StoredToken& stored, TextCodecParts& parts) {
  parts.added.push_back(stored.token);
  if (!stored.is_normalized) {
    parts.added_in_text.add(stored.token);
    return;
  }
  AddedToken normalized = stored.token;
  if (parts.normalizer != nullptr) {
    TracedText text(stored.token.content, 0, false);
    parts.normalizer->normalize(text);
    normalized.content = text.text();
  }
  require(!normalized.content.empty(), "the added token \"{}\" is empty after normalization, so it can't be found in texts",
          shown(stored.token.content));
  parts.added_in_normalized.add(normalized);
}

void add_folder_tokens(const Location& folder, TextCodecParts& parts) {
  for (const StoredToken& stored : folder_tokens(folder)) {
    const auto has_number = [&](const AddedToken& other) { return other.number == stored.token.number; };
    if (!stored.token.content.empty() && std::ranges::none_of(parts.added, has_number)) add_token(stored, parts);
  }
}

}  // namespace trireme::tokenizers
