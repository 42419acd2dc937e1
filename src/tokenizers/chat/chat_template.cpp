#include "trireme/tokenizers/chat/chat_template.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::tokenizers {
namespace {

// Unicode white space that Python's strip() removes.
constexpr std::string_view spaces[] = {" ",      "\t",     "\n",     "\v",     "\f",     "\r",     "\x1c",   "\x1d",
                                       "\x1e",   "\x1f",   "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002",
                                       "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
                                       "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};

// The first of `spaces` for which the condition is true, or empty.
std::string_view space_that(const auto& is_there) {
  const auto found = std::ranges::find_if(spaces, is_there);
  return found == std::end(spaces) ? std::string_view() : *found;
}

std::string trimmed(std::string_view text) {
  const auto begins = [&text](std::string_view space) { return text.starts_with(space); };
  const auto ends = [&text](std::string_view space) { return text.ends_with(space); };
  for (auto space = space_that(begins); !space.empty(); space = space_that(begins)) text.remove_prefix(space.size());
  for (auto space = space_that(ends); !space.empty(); space = space_that(ends)) text.remove_suffix(space.size());
  return std::string(text);
}

std::string or_else(const std::string& mark, const char* common) { return mark.empty() ? common : mark; }

constexpr const char* alpaca_preamble =
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.";

}  // namespace

std::vector<std::string> ChatTemplate::names() {
  return {"chatml", "llama3", "llama2", "mistral", "zephyr", "alpaca", "plain"};
}

std::optional<ChatTemplate::Style> ChatTemplate::style_of(std::string_view name, const TextMarks& marks) {
  const std::string begin = or_else(marks.begin, name == "llama3" ? "<|begin_of_text|>" : "<s>");
  const std::string end = or_else(marks.end, "</s>");
  if (name == "chatml") {
    return Style{.begin = begin,
                 .end = end,
                 .before_system = "<|im_start|>system\n",
                 .after_system = "<|im_end|>\n",
                 .before_user = "<|im_start|>user\n",
                 .after_user = "<|im_end|>\n",
                 .before_answer = "<|im_start|>assistant\n",
                 .end_of_answer = "<|im_end|>",
                 .after_answer = "\n",
                 .special = {"<|im_start|>", "<|im_end|>"}};
  }
  if (name == "llama3") {
    return Style{.begin = begin,
                 .end = end,
                 .opening = begin,
                 .before_system = "<|start_header_id|>system<|end_header_id|>\n\n",
                 .after_system = "<|eot_id|>",
                 .before_user = "<|start_header_id|>user<|end_header_id|>\n\n",
                 .after_user = "<|eot_id|>",
                 .before_answer = "<|start_header_id|>assistant<|end_header_id|>\n\n",
                 .end_of_answer = "<|eot_id|>",
                 .special = {begin, "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
                 .trims = true};
  }
  if (name == "llama2") {
    return Style{.begin = begin,
                 .end = end,
                 .before_system = "<<SYS>>\n",
                 .after_system = "\n<</SYS>>\n\n",
                 .before_user = fmt::format("{}[INST] ", begin),
                 .after_user = " [/INST]",
                 .begin_of_answer = " ",
                 .end_of_answer = fmt::format(" {}", end),
                 .special = {begin, end},
                 .system_in_user = true,
                 .alternates = true,
                 .trims = true};
  }
  if (name == "mistral") {
    return Style{.begin = begin,
                 .end = end,
                 .opening = begin,
                 .after_system = "\n\n",
                 .before_user = "[INST] ",
                 .after_user = " [/INST]",
                 .end_of_answer = end,
                 .special = {begin, end},
                 .system_in_user = true,
                 .alternates = true};
  }
  if (name == "zephyr") {
    return Style{.begin = begin,
                 .end = end,
                 .before_system = "<|system|>\n",
                 .after_system = fmt::format("{}\n", end),
                 .before_user = "<|user|>\n",
                 .after_user = fmt::format("{}\n", end),
                 .before_answer = "<|assistant|>\n",
                 .end_of_answer = end,
                 .after_answer = "\n",
                 .special = {end}};
  }
  if (name == "alpaca") {
    return Style{.begin = begin,
                 .end = end,
                 .before_user = "\n\n### Instruction:\n",
                 .before_answer = "\n\n### Response:\n",
                 .end_of_answer = end,
                 .system = alpaca_preamble,
                 .special = {end},
                 .as_text = true};
  }
  if (name == "plain") return Style{.begin = begin, .end = end, .end_of_answer = end, .special = {end}, .as_text = true};
  return std::nullopt;
}

ChatTemplate::ChatTemplate(std::string_view name, const Tokenizer& tokenizer, const TextMarks& marks)
    : name_(name), tokenizer_(tokenizer) {
  auto style = style_of(name, marks);
  require(style.has_value(), "a chat template \"{}\" is not known: use one of {}", name, fmt::join(names(), ", "));
  style_ = *std::move(style);
  const auto missing = missing_token(style_, tokenizer_);
  if (!missing) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("the chat template {} needs the token {}, which the tokenizer lacks", name, *missing),
               .hint = fmt::format("name the template that the model was made for, or alpaca or plain, which need no special "
                                   "tokens; there are {}",
                                   fmt::join(names(), ", "))});
}

std::optional<std::string> ChatTemplate::missing_token(const Style& style, const Tokenizer& tokenizer) {
  if (tokenizer.is_of_bytes()) return std::nullopt;
  const auto found = std::ranges::find_if(style.special, [&](const std::string& token) { return !tokenizer.find(token); });
  return found == style.special.end() ? std::nullopt : std::optional(*found);
}

void ChatTemplate::check_order(std::span<const Message> messages) const {
  require(!messages.empty(), "a conversation has no messages");
  const bool has_system = messages.front().role == "system";
  for (std::size_t at = 0; at < messages.size(); ++at) {
    const std::string& role = messages[at].role;
    require(role == "system" || role == "user" || role == "assistant",
            "message {} has the role \"{}\": use system, user or assistant", at, role);
    require(role != "system" || at == 0, "message {} has the role system, which only the first message can have", at);
    const bool is_users = (at - (has_system ? 1U : 0U)) % 2 == 0;
    require(!style_.alternates || role == "system" || (role == "user") == is_users,
            "message {} has the role {}: with the chat template {} user and assistant take turns, and the user begins", at,
            role, name_);
  }
  require(!style_.system_in_user || !has_system || messages.size() > 1,
          "this chat template puts the system message into a user message, but there is none");
}

ChatText ChatTemplate::render(std::span<const Message> messages) const {
  check_order(messages);
  ChatText result{.text = style_.opening, .learnt = {}};
  std::string& text = result.text;
  std::string system;  // a system message that is not written yet
  if (messages.front().role != "system") text += style_.system;
  for (const Message& message : messages) {
    const std::string content = style_.trims ? trimmed(message.content) : message.content;
    if (message.role == "system") {
      system = style_.before_system + (style_.system_in_user ? message.content : content) + style_.after_system;
      if (!style_.system_in_user) text += std::exchange(system, "");
    } else if (message.role == "user") {
      const std::string whole = std::exchange(system, "") + (style_.system_in_user ? message.content : content);
      text += style_.before_user + (style_.trims ? trimmed(whole) : whole) + style_.after_user;
    } else {
      text += style_.before_answer;
      const std::size_t begin = text.size();
      text += style_.begin_of_answer + content + style_.end_of_answer;
      if (message.learnt) {
        result.learnt.push_back({static_cast<std::int64_t>(begin), static_cast<std::int64_t>(text.size())});
      }
      text += style_.after_answer;
    }
  }
  return result;
}

ChatTokens ChatTemplate::encode(std::span<const Message> messages) const {
  const ChatText chat = render(messages);
  const Encoding encoding = tokenizer_.encode_with_offsets(chat.text, {.add_special_tokens = style_.as_text});
  ChatTokens result{.tokens = encoding.tokens, .learnt = std::vector<bool>(encoding.tokens.size())};
  const auto is_added = [&encoding](std::size_t token) { return encoding.offsets[token].begin == encoding.offsets[token].end; };
  std::size_t token = 0;
  for (const Range& range : chat.learnt) {
    while (token < result.tokens.size() && encoding.offsets[token].end <= range.begin) ++token;
    std::size_t behind = token;  // one past the last token with a byte of the range
    for (std::size_t at = token; at < result.tokens.size() && encoding.offsets[at].begin < range.end; ++at) {
      if (!is_added(at)) behind = at + 1;
    }
    for (; token < behind; ++token) result.learnt[token] = true;
  }
  // If the tokenizer adds an end token too, removes the second one.
  const std::size_t count = result.tokens.size();
  if (style_.as_text && count > 1 && is_added(count - 1) && result.tokens[count - 1] == result.tokens[count - 2]) {
    result.tokens.pop_back();
    result.learnt.pop_back();
  }
  return result;
}

}  // namespace trireme::tokenizers
