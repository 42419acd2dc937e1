#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "tokenizers/files/json_parts.hpp"

namespace trireme::tokenizers {
namespace {

constexpr const char* post_processors = "BertProcessing, ByteLevel, RobertaProcessing, Sequence or TemplateProcessing";
constexpr const char* decoders = "ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence, Strip or WordPiece";

std::vector<std::int32_t> read_numbers(const ConfigFile& part, std::string_view key) {
  const auto refuse = [&] { part.refuse(key, "a list of the numbers of tokens"); };
  std::vector<std::int32_t> numbers;
  const nlohmann::json* list = part.value(key);
  if (list == nullptr || !list->is_array()) refuse();
  for (const auto& each : *list) {
    if (!each.is_number_unsigned() || each.get<std::uint64_t>() >= 1u << 24) refuse();
    numbers.push_back(each.get<std::int32_t>());
  }
  return numbers;
}

// [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
TextTemplate read_template(const ConfigFile& part, const char* key, int texts) {
  TextTemplate result;
  int seen[2] = {0, 0};
  for (const ConfigFile& piece : part.objects(key)) {
    const bool is_text = piece.has("Sequence");
    const ConfigFile what(piece, is_text ? "Sequence" : "SpecialToken");
    TemplatePiece next{.type = static_cast<std::int32_t>(std::min<std::int64_t>(what.integer_or("type_id", 0, 0), 1 << 24))};
    const std::string id = what.text("id");
    if (is_text) {
      next.text = id == "A" ? 0 : 1;
      if ((id != "A" && id != "B") || next.text >= texts) what.refuse("id", texts == 1 ? "A" : "A or B");
      ++seen[next.text];
    } else {
      next.tokens = read_numbers(ConfigFile(ConfigFile(part, "special_tokens"), id), "ids");
    }
    result.push_back(std::move(next));
  }
  for (int text = 0; text < texts; ++text) {
    if (seen[text] != 1) part.refuse(key, texts == 1 ? "a template with A once" : "a template with A and B once each");
  }
  return result;
}

// ["[SEP]", 102]
std::int32_t read_number(const ConfigFile& part, const char* key) {
  const nlohmann::json* pair = part.value(key);
  const bool fits = pair != nullptr && pair->is_array() && pair->size() == 2 && (*pair)[0].is_string() &&
                    (*pair)[1].is_number_unsigned() && (*pair)[1].get<std::uint64_t>() < 1u << 24;
  if (!fits) part.refuse(key, "a token and its number");
  return (*pair)[1].get<std::int32_t>();
}

// Adds a decoder. Its steps must be in the order in which DecoderOptions applies them; other orders are refused.
void add_decoder(const ConfigFile& part, DecoderOptions& to, bool& is_fused) {
  const std::string type = part.text("type");
  if (type == "Sequence") {
    for (const ConfigFile& each : part.objects("decoders")) add_decoder(each, to, is_fused);
  } else if (type == "ByteLevel") {
    part.ignore({"add_prefix_space", "trim_offsets", "use_regex"});
  } else if (type == "WordPiece") {
    if (is_fused) part.refuse("type", "WordPiece before Fuse");
    to.continuing_prefix = part.text_or("prefix", "##");
    to.cleans_up = part.flag_or("cleanup", true);
  } else if (type == "Replace") {
    const ConfigFile pattern(part, "pattern");
    if (to.byte_fallback || is_fused) part.refuse("type", "Replace before ByteFallback and Fuse");
    std::string from = pattern.text("String");
    if (from.empty()) pattern.refuse("String", "a text that is not empty");
    to.replacements.emplace_back(std::move(from), part.text("content"));
  } else if (type == "ByteFallback") {
    if (is_fused) part.refuse("type", "ByteFallback before Fuse");
    to.byte_fallback = true;
  } else if (type == "Fuse") {
    is_fused = true;
  } else if (type == "Strip") {
    if (!is_fused || part.integer_or("stop", 0, 0) != 0) part.refuse("type", "Strip behind Fuse, of the begin alone");
    to.strip_at_begin = part.text("content");
    to.strips_at_begin = part.integer_or("start", 0, 0);
    if (to.strips_at_begin > 1) part.refuse("start", "0 or 1");
    if (to.strip_at_begin.empty()) part.refuse("content", "a character");
  } else if (type == "Metaspace") {
    if (is_fused) part.refuse("type", "Metaspace before Fuse");
    const std::string sign = part.text("replacement");
    if (sign.empty()) part.refuse("replacement", "a character");
    const bool adds = part.text_or("prepend_scheme", "always") != "never" && part.flag_or("add_prefix_space", true);
    if (adds) to.drop_from_first = sign;
    to.replacements.emplace_back(sign, " ");
    part.ignore({"split", "str_rep"});
  } else {
    part.refuse("type", decoders);
  }
  part.refuse_unknown();
}

}  // namespace

void read_post_processor(const ConfigFile& part, TextCodecParts& to) {
  const std::string type = part.text("type");
  if (type == "Sequence") {
    for (const ConfigFile& each : part.objects("processors")) read_post_processor(each, to);
  } else if (type == "ByteLevel") {
    to.trims_offsets = part.flag_or("trim_offsets", true);
    to.keeps_first_space = part.flag_or("add_prefix_space", true);
    part.ignore({"use_regex"});
  } else if (type == "TemplateProcessing") {
    to.single = read_template(part, "single", 1);
    if (part.value("pair") != nullptr && !part.value("pair")->empty()) to.pair = read_template(part, "pair", 2);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const std::vector<std::int32_t> begin{read_number(part, "cls")}, end{read_number(part, "sep")};
    to.single = {{.tokens = begin}, {.text = 0}, {.tokens = end}};
    if (type == "BertProcessing") {
      to.pair = {{.tokens = begin}, {.text = 0}, {.tokens = end}, {.text = 1, .type = 1}, {.type = 1, .tokens = end}};
    } else {
      to.pair = {{.tokens = begin}, {.text = 0}, {.tokens = end}, {.tokens = end}, {.text = 1}, {.tokens = end}};
      to.trims_offsets = part.flag_or("trim_offsets", true);
      to.keeps_first_space = part.flag_or("add_prefix_space", true);
    }
  } else {
    part.refuse("type", post_processors);
  }
  part.refuse_unknown();
}

DecoderOptions read_decoder(const ConfigFile& part) {
  DecoderOptions options;
  bool is_fused = false;
  add_decoder(part, options, is_fused);
  return options;
}

}  // namespace trireme::tokenizers
