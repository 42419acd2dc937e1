#include <fmt/format.h>

#include <map>
#include <utility>

#include "tokenizers/files/json_parts.hpp"
#include "trireme/tokenizers/files/read_tokenizer.hpp"

namespace trireme::tokenizers {
namespace {

constexpr const char* normalizers = "BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Prepend, Replace or Sequence";
constexpr const char* pre_tokenizers = "BertPreTokenizer, ByteLevel, Digits, Metaspace, Sequence or Split";

// A regular expression that matches exactly this text.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    const bool is_sign =
        byte > ' ' && byte < 0x7F && !(byte >= '0' && byte <= '9') && !((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
    if (is_sign) result += '\\';
    result += character;
  }
  return result;
}

// "pattern": {"String": ...} or {"Regex": ...}.
std::variant<std::string, Regex> read_pattern(const ConfigFile& part) {
  const ConfigFile pattern(part, "pattern");
  if (pattern.has("Regex")) {
    std::variant<std::string, Regex> result = Regex(pattern.text("Regex"), RegexRules::oniguruma);
    pattern.refuse_unknown();
    return result;
  }
  std::string text = pattern.text("String");
  if (text.empty()) pattern.refuse("String", "a text that is not empty");
  pattern.refuse_unknown();
  return text;
}

SplitByRegex read_split(const ConfigFile& part) {
  const auto pattern = read_pattern(part);
  const auto* literal = std::get_if<std::string>(&pattern);
  SplitByRegex split{.regex = literal != nullptr ? Regex(escaped(*literal), RegexRules::oniguruma) : std::get<Regex>(pattern)};
  const std::string behavior = part.text("behavior");
  const bool inverts = part.flag_or("invert", false);
  if (behavior == "Removed" && inverts) {
    split.drops_others = true;
  } else if (behavior != "Isolated") {
    part.refuse("behavior", "Isolated, or Removed with invert");
  }
  return split;
}

// A pre-tokenizer that changes texts must come first: after others it would change each of their parts.
void check_changes(const ConfigFile& part, const char* key, const PreTokenizerParts& to) {
  if (to.at_begin != nullptr || !to.splitter.is_empty()) part.refuse(key, "what changes texts before all other pre-tokenizers");
}

void read_metaspace(const ConfigFile& part, PreTokenizerParts& to) {
  const std::string sign = part.text("replacement");
  if (sign.empty() || size_of_character(sign[0]) != sign.size()) part.refuse("replacement", "a character");
  const std::string scheme = part.text_or("prepend_scheme", "always");
  if (scheme != "always" && scheme != "first" && scheme != "never") part.refuse("prepend_scheme", "always, first or never");
  const bool adds = scheme != "never";
  if (!part.flag_or("add_prefix_space", adds) && adds) part.refuse("add_prefix_space", "true, or prepend_scheme never");
  part.ignore({"str_rep"});
  check_changes(part, "type", to);
  const std::shared_ptr<const Normalizer> bare = std::make_shared<Replace>(std::string(" "), sign);
  const std::shared_ptr<const Normalizer> prefixed = std::make_shared<NormalizerSequence>(
      std::vector<std::shared_ptr<const Normalizer>>{bare, std::make_shared<Prepend>(sign, true)});
  to.at_begin = adds ? prefixed : bare;
  to.later = scheme == "always" ? prefixed : bare;
  if (part.flag_or("split", true)) to.splitter.add(SplitBefore{sign});
}

void add_pre_tokenizer(const ConfigFile& part, PreTokenizerParts& to) {
  const std::string type = part.text("type");
  if (to.is_byte_level && type != "Sequence") part.refuse("type", "nothing behind ByteLevel");
  if (type == "Sequence") {
    for (const ConfigFile& each : part.objects("pretokenizers")) add_pre_tokenizer(each, to);
  } else if (type == "Split") {
    to.splitter.add(read_split(part));
  } else if (type == "ByteLevel") {
    if (part.flag_or("add_prefix_space", true)) {
      check_changes(part, "add_prefix_space", to);
      to.at_begin = to.later = std::make_shared<Prepend>(" ", true);
    }
    if (part.flag_or("use_regex", true)) to.splitter.add(SplitByRegex{.regex = Regex(patterns::gpt2, RegexRules::oniguruma)});
    part.ignore({"trim_offsets"});
    to.is_byte_level = true;
  } else if (type == "BertPreTokenizer") {
    to.splitter.add(SplitLikeBert{});
  } else if (type == "Digits") {
    to.splitter.add(SplitByRegex{
        .regex = Regex(part.flag_or("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)", RegexRules::oniguruma)});
  } else if (type == "Metaspace") {
    read_metaspace(part, to);
  } else {
    part.refuse("type", pre_tokenizers);
  }
  part.refuse_unknown();
}

}  // namespace

std::shared_ptr<const Normalizer> read_normalizer(const ConfigFile& part) {
  static const std::map<std::string, UnicodeForm, std::less<>> forms{
      {"NFC", UnicodeForm::nfc}, {"NFD", UnicodeForm::nfd}, {"NFKC", UnicodeForm::nfkc}, {"NFKD", UnicodeForm::nfkd}};
  const std::string type = part.text("type");
  std::shared_ptr<const Normalizer> result;
  if (const auto form = forms.find(type); form != forms.end()) {
    result = unicode_normalizer(form->second);
  } else if (type == "Sequence") {
    std::vector<std::shared_ptr<const Normalizer>> steps;
    for (const ConfigFile& each : part.objects("normalizers")) steps.push_back(read_normalizer(each));
    result = std::make_shared<NormalizerSequence>(std::move(steps));
  } else if (type == "Lowercase") {
    result = lowercase_normalizer();
  } else if (type == "Prepend") {
    result = std::make_shared<Prepend>(part.text("prepend"), false);
  } else if (type == "Replace") {
    result = std::make_shared<Replace>(read_pattern(part), part.text("content"));
  } else if (type == "BertNormalizer") {
    BertNormalizerOptions options{.clean_text = part.flag_or("clean_text", true),
                                  .handle_chinese_chars = part.flag_or("handle_chinese_chars", true),
                                  .lowercase = part.flag_or("lowercase", true)};
    if (part.has("strip_accents")) options.strip_accents = part.flag_or("strip_accents", true);
    result = bert_normalizer(options);
  } else {
    part.refuse("type", normalizers);
  }
  part.refuse_unknown();
  return result;
}

PreTokenizerParts read_pre_tokenizer(const ConfigFile& part) {
  PreTokenizerParts result;
  add_pre_tokenizer(part, result);
  return result;
}

}  // namespace trireme::tokenizers
