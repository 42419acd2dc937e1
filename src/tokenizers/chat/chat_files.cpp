// Chat templates and marks of texts in the files of a model's folder.

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "tokenizers/chat/jinja_form.hpp"
#include "tokenizers/chat/known_templates.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"
#include "trireme/files/json_fault.hpp"
#include "trireme/tokenizers/chat/chat_template.hpp"

namespace trireme::tokenizers {
namespace {

using nlohmann::json;

Location folder_of(const Location& path) { return is_folder(path) ? path : path.parent(); }

// The JSON object in a file, or null if there is no file.
json object_in(const Location& path) {
  if (!is_there(path)) return {};
  const std::string text = open_file(path)->content();
  json object = json::parse(text, nullptr, false);
  if (object.is_object()) return object;
  throw Error({.code = ErrorCode::corrupt_file,
               .message = "a config beside a tokenizer is no JSON object" + why_no_json(text),
               .path = path.string()});
}

// Reads "<s>", or {"content": "<s>", ...}.
std::string mark_in(const json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) return "";
  const json& mark = object.at(key);
  if (mark.is_string()) return mark.get<std::string>();
  const bool has_content = mark.is_object() && mark.contains("content") && mark.at("content").is_string();
  return has_content ? mark.at("content").get<std::string>() : "";
}

std::string mark_by_number(const json& config, const char* key, const Tokenizer& tokenizer) {
  if (!config.is_object() || !config.contains(key)) return "";
  const json& number = config.at(key).is_array() && !config.at(key).empty() ? config.at(key).front() : config.at(key);
  const bool is_token =
      number.is_number_integer() && number.get<std::int64_t>() >= 0 && number.get<std::int64_t>() < tokenizer.vocabulary_size();
  return is_token ? tokenizer.spelling(number.get<std::int32_t>()) : "";
}

// The tokens that the tokenizer adds before each text.
std::vector<std::int32_t> tokens_before(const std::string& token, const Tokenizer& tokenizer) {
  const Encoding encoding = tokenizer.encode_with_offsets(token);
  std::vector<std::int32_t> before;
  for (std::size_t at = 0; at < encoding.tokens.size() && encoding.offsets[at].count() == 0; ++at) {
    before.push_back(encoding.tokens[at]);
  }
  return before;
}

std::string first_known(const Tokenizer& tokenizer, std::initializer_list<const char*> names) {
  const auto found = std::ranges::find_if(names, [&](const char* name) { return tokenizer.find(name).has_value(); });
  return found == names.end() ? "" : *found;
}

struct FoundTemplate {
  Location file;
  std::string text;  // empty if there is none
};

// Finds the template for conversations.
FoundTemplate template_in(const Location& folder) {
  const Location own = folder / "chat_template.jinja";
  if (is_there(own)) return {own, open_file(own)->content()};
  const Location config_path = folder / "tokenizer_config.json";
  const json config = object_in(config_path);
  if (!config.is_object() || !config.contains("chat_template")) return {};
  const json& templates = config.at("chat_template");
  if (templates.is_string()) return {config_path, templates.get<std::string>()};
  for (const json& each : templates.is_array() ? templates : json::array()) {
    if (mark_in(each, "name") == "default") return {config_path, mark_in(each, "template")};
  }
  return {};
}

// A text as a string literal of Jinja.
std::string literal(const std::string& text) { return json(text).dump(-1, ' ', false, json::error_handler_t::replace); }

// A Jinja expression that writes these texts and expressions in sequence.
std::string output(std::initializer_list<std::string> parts) {
  std::string sum;
  for (const std::string& part : parts) {
    if (part != R"("")") sum += (sum.empty() ? "" : " + ") + part;
  }
  return sum.empty() ? "" : fmt::format("{{{{- {} }}}}\n", sum);
}

}  // namespace

TextMarks text_marks(const Tokenizer& tokenizer, const Location& path) {
  if (tokenizer.is_of_bytes()) return {.begin = "", .end = std::string(1, '\0')};
  const Location folder = folder_of(path);
  TextMarks marks;
  const auto take = [&marks](const std::string& begin, const std::string& end) {
    if (marks.begin.empty()) marks.begin = begin;
    if (marks.end.empty()) marks.end = end;
  };
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const json object = object_in(folder / name);
    take(mark_in(object, "bos_token"), mark_in(object, "eos_token"));
  }
  const json config = object_in(folder / "config.json");
  take(mark_by_number(config, "bos_token_id", tokenizer), mark_by_number(config, "eos_token_id", tokenizer));
  take(first_known(tokenizer, {"<s>", "<|begin_of_text|>", "<bos>"}),
       first_known(tokenizer, {"</s>", "<|end_of_text|>", "<|endoftext|>", "<eos>", "<|im_end|>", "[SEP]"}));
  return marks;
}

std::string ChatTemplate::jinja() const {
  const Style& style = style_;
  const std::string trim = style.trims ? " | trim" : "";
  const std::string content = "message['content']" + trim;
  std::string opening = style.opening;
  if (style.as_text) {
    for (const std::int32_t token : tokens_before(style.end_of_answer, tokenizer_)) opening += tokenizer_.spelling(token);
  }
  std::string text = fmt::format(
      "{{%- if messages[0]['role'] == 'system' %}}\n"
      "{{%- set system = {} + messages[0]['content']{} + {} %}}\n"
      "{{%- set turns = messages[1:] %}}\n"
      "{{%- else %}}\n"
      "{{%- set system = {} %}}\n"
      "{{%- set turns = messages %}}\n"
      "{{%- endif %}}\n",
      literal(style.before_system), style.system_in_user ? "" : trim, literal(style.after_system), literal(style.system));
  text += style.system_in_user ? output({literal(opening)}) : output({literal(opening), "system"});
  text += "{%- for message in turns %}\n";
  if (style.alternates) {
    text +=
        "{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\n"
        "{{- raise_exception('user and assistant take turns, and the user begins') }}\n"
        "{%- endif %}\n";
  }
  const std::string of_user = style.system_in_user ? "((system if loop.first else '') + message['content'])" + trim : content;
  text += "{%- if message['role'] == 'user' %}\n";
  text += output({literal(style.before_user), of_user, literal(style.after_user)});
  text += "{%- elif message['role'] == 'assistant' %}\n";
  text += output(
      {literal(style.before_answer + style.begin_of_answer), content, literal(style.end_of_answer + style.after_answer)});
  text +=
      "{%- else %}\n"
      "{{- raise_exception('a message is of the system, the user or the assistant, and the system speaks first') }}\n"
      "{%- endif %}\n"
      "{%- endfor %}\n";
  if (!style.before_answer.empty()) {
    text += "{%- if add_generation_prompt %}\n" + output({literal(style.before_answer)}) + "{%- endif %}\n";
  }
  return text;
}

std::optional<std::string> ChatTemplate::known_in(const Location& path, const Tokenizer& tokenizer) {
  const std::string text = template_in(folder_of(path)).text;
  if (text.empty()) return std::nullopt;
  const TextMarks marks = text_marks(tokenizer, path);
  for (const std::string& name : names()) {
    const Style style = *style_of(name, marks);
    if (!missing_token(style, tokenizer) && ChatTemplate(name, tokenizer, marks).jinja() == text) return name;
    const TextMarks of_style{.begin = style.begin, .end = style.end};
    const auto form = jinja_form(text, of_style);
    const auto is_same = [&](const std::string& known) { return jinja_form(known, of_style) == form; };
    if (form && std::ranges::any_of(known_templates(name), is_same)) return name;
  }
  return std::nullopt;
}

std::optional<Location> ChatTemplate::file_in(const Location& path) {
  const FoundTemplate found = template_in(folder_of(path));
  return found.text.empty() ? std::nullopt : std::optional(found.file);
}

}  // namespace trireme::tokenizers
