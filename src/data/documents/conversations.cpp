#include "trireme/data/documents/conversations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "data/sources/files_below.hpp"
#include "data/sources/lines.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/text/text.hpp"
#include "trireme/data/text/text_batch.hpp"
#include "trireme/files/json_fault.hpp"

namespace trireme::data {
namespace {

using nlohmann::json;
using tokenizers::Message;

constexpr const char* wanted_objects =
    R"(each line is {"prompt": ..., "completion": ...} or {"messages": [{"role": ..., "content": ...}, ...]})";

[[noreturn]] void refuse(const Conversation& at, const std::string& message, const std::string& hint = "") {
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("line {}: {}", at.line, message),
               .path = at.file,
               .hint = hint});
}

std::string text_at(const json& object, const char* key, const Conversation& at) {
  const auto found = object.find(key);
  if (found == object.end()) refuse(at, fmt::format("there is no \"{}\"", key), wanted_objects);
  if (!found->is_string()) refuse(at, fmt::format("\"{}\" is no text", key), wanted_objects);
  return found->get<std::string>();
}

bool says_nothing(const json& value) { return value.is_null() || value == "" || (value.is_structured() && value.empty()); }

// Refuses unsupported keys that would change the text or what is learnt. Ignores other keys of a line.
void refuse_what_is_not_read(const json& object, const Conversation& at) {
  for (const char* key : {"tools", "functions", "documents", "system", "history", "weight", "train"}) {
    const auto found = object.find(key);
    if (found == object.end() || says_nothing(*found) || *found == 1 || *found == true) continue;
    refuse(at, fmt::format("\"{}\" beside the messages is not supported", key),
           "remove it, or put it into the messages: weight and train belong in a message, a system prompt is a message");
  }
}

// Whether a message is learnt. By default those of the assistant are; "weight": 0 or "train": false turns it off.
bool is_learnt(const json& message, const std::string& role, const std::string& name, const Conversation& at) {
  const bool is_answer = role == "assistant";
  bool learnt = is_answer;
  const auto take = [&](const char* key, const char* wanted, const auto& value_of) {
    const auto found = message.find(key);
    if (found == message.end() || found->is_null()) return;
    const std::optional<bool> said = value_of(*found);
    if (!said) refuse(at, fmt::format("{} has a \"{}\" of {}", name, key, found->dump()), wanted);
    if (*said && !is_answer) {
      refuse(at,
             fmt::format("{} of the {} has a \"{}\" of {}, but only the assistant's can be learnt", name, role, key,
                         found->dump()),
             "leave it out, or give the message to the assistant");
    }
    learnt = learnt && *said;
  };
  take("weight", "a weight is 0 or 1: whether the message is learnt", [](const json& value) -> std::optional<bool> {
    if (value == 0) return false;
    return value == 1 ? std::optional(true) : std::nullopt;
  });
  take("train", "train is true or false: whether the message is learnt", [](const json& value) -> std::optional<bool> {
    return value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
  });
  return learnt;
}

Message message_of(const json& object, std::size_t number, const Conversation& at) {
  if (!object.is_object()) refuse(at, "a message is no object", wanted_objects);
  Message message{.role = text_at(object, "role", at), .content = text_at(object, "content", at)};
  const std::string name = fmt::format("message {}", number);
  if (message.role != "system" && message.role != "user" && message.role != "assistant") {
    refuse(at, fmt::format("{} has the role \"{}\"", name, message.role), "use system, user or assistant");
  }
  constexpr std::array known{"role", "content", "weight", "train", "name", "id", "timestamp"};  // the last three are ignored
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(known, key) != known.end() || says_nothing(value) || value == false) continue;
    refuse(at, fmt::format("{} has \"{}\", which chat templates here do not support", name, key),
           "write it into the content, as the model should see it, or remove it");
  }
  message.learnt = is_learnt(object, message.role, name, at);
  return message;
}

std::vector<Message> messages_of(const json& object, const Conversation& at) {
  const bool has_messages = object.contains("messages"), has_prompt = object.contains("prompt");
  if (has_messages == (has_prompt || object.contains("completion"))) {
    refuse(at,
           has_messages ? "there are \"messages\" and a \"prompt\" or \"completion\""
                        : "there are neither \"messages\" nor \"prompt\" and \"completion\"",
           wanted_objects);
  }
  if (!has_messages) return {{"user", text_at(object, "prompt", at)}, {"assistant", text_at(object, "completion", at)}};
  std::vector<Message> messages;
  if (!object.at("messages").is_array()) refuse(at, "\"messages\" is no list", wanted_objects);
  for (const json& message : object.at("messages")) messages.push_back(message_of(message, messages.size(), at));
  return messages;
}

Conversation conversation_of(std::string_view text, Conversation at) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) refuse(at, "this is no JSON object" + why_no_json(text), wanted_objects);
  refuse_what_is_not_read(object, at);
  at.messages = messages_of(object, at);
  bool has_answer = false, has_learnt = false;
  for (const Message& message : at.messages) {
    if (message.role != "assistant") continue;
    has_answer = true;
    has_learnt = has_learnt || message.learnt;
    if (message.content.empty() && message.learnt) refuse(at, "an answer is empty", "leave the line out: it teaches nothing");
  }
  if (has_learnt) return at;
  refuse(at, has_answer ? "all answers have a weight of 0 or train false" : "no message is the assistant's",
         "leave the line out: it has nothing to learn");
}

void read_lines(const Location& path, std::vector<Conversation>& into) {
  const std::string content = read_text(path);
  LineScanner lines(content, 0);
  while (const auto line = lines.next()) {
    into.push_back(conversation_of(line->text, {.messages = {}, .file = path.string(), .line = line->number}));
  }
}

std::vector<Location> files_of(const Location& path) {
  if (!is_folder(path)) return {path};
  std::vector<Location> files = files_below(path);
  std::erase_if(files, [](const Location& file) { return file.extension() != ".jsonl"; });
  return files;
}

}  // namespace

std::vector<Conversation> read_conversations(const Location& path) {
  std::vector<Conversation> conversations;
  for (const Location& file : files_of(path)) read_lines(file, conversations);
  if (!conversations.empty()) return conversations;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = "there are no conversations",
               .path = path.string(),
               .hint = fmt::format("name a file of JSON lines, or a folder of .jsonl files: {}", wanted_objects)});
}

EncodedConversation encode_conversation(const tokenizers::ChatTemplate& chat, const Conversation& conversation) {
  tokenizers::ChatTokens encoded;
  try {
    encoded = chat.encode(conversation.messages);
  } catch (const Error& error) {
    if (conversation.file.empty()) throw;
    refuse(conversation, error.fields().message, error.fields().hint);
  }
  const std::size_t count = encoded.tokens.size();
  EncodedConversation result{.tokens = std::move(encoded.tokens), .targets = std::vector<std::int32_t>(count, no_target)};
  for (std::size_t at = 0; at + 1 < count; ++at) {
    if (encoded.learnt[at + 1]) result.targets[at] = result.tokens[at + 1];
  }
  return result;
}

EncodedConversations encode_conversations(const tokenizers::ChatTemplate& chat, std::span<const Conversation> conversations,
                                          std::int64_t length) {
  require(length > 0, "conversations need a length of at least one token, got {}", length);
  EncodedConversations all;
  for (const Conversation& conversation : conversations) {
    auto [tokens, targets] = encode_conversation(chat, conversation);
    const auto is_learnt = [](std::int32_t target) { return target != no_target; };
    while (!targets.empty() && !is_learnt(targets.back())) targets.pop_back();
    const bool is_cut = std::cmp_greater(targets.size(), length);
    if (is_cut) targets.resize(static_cast<std::size_t>(length));
    const auto learnt = std::ranges::count_if(targets, is_learnt);
    if (learnt == 0) {
      ++all.num_left_out;
      continue;
    }
    all.num_cut += is_cut ? 1 : 0;
    all.num_learnt += learnt;
    tokens.resize(targets.size());
    all.documents.add({.tokens = tokens, .targets = targets});
  }
  require(all.documents.size() > 0, "none of {} conversations has an answer within its first {} tokens", conversations.size(),
          length);
  return all;
}

}  // namespace trireme::data
