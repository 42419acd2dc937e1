#include "trireme/data/conversations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "data/files_below.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/text.hpp"
#include "trireme/data/text_batch.hpp"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;
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
  for (const json& message : object.at("messages")) {
    if (!message.is_object()) refuse(at, "a message is no object", wanted_objects);
    messages.push_back({.role = text_at(message, "role", at), .content = text_at(message, "content", at)});
    const std::string& role = messages.back().role;
    if (role != "system" && role != "user" && role != "assistant") {
      refuse(at, fmt::format("message {} has the role \"{}\"", messages.size() - 1, role), "use system, user or assistant");
    }
  }
  return messages;
}

Conversation conversation_of(std::string_view text, Conversation at) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) refuse(at, "this is no JSON object", wanted_objects);
  at.messages = messages_of(object, at);
  bool has_answer = false;
  for (const Message& message : at.messages) {
    if (message.role != "assistant") continue;
    has_answer = true;
    if (message.content.empty()) refuse(at, "an answer is empty", "leave the line out: it teaches nothing");
  }
  if (!has_answer) refuse(at, "no message is the assistant's", "leave the line out: there is nothing to learn in it");
  return at;
}

void read_lines(const fs::path& path, std::vector<Conversation>& into) {
  const std::string content = read_text(path);
  std::string_view rest = content;
  if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);  // a mark of UTF-8
  for (std::int64_t line = 1; !rest.empty(); ++line) {
    const std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    if (text.find_first_not_of(" \t\r") == text.npos) continue;
    into.push_back(conversation_of(text, {.messages = {}, .file = path.string(), .line = line}));
  }
}

std::vector<fs::path> files_of(const fs::path& path) {
  std::error_code unknown;
  if (!fs::is_directory(path, unknown)) return {path};
  std::vector<fs::path> files = files_below(path);
  std::erase_if(files, [](const fs::path& file) { return file.extension() != ".jsonl"; });
  return files;
}

}  // namespace

std::vector<Conversation> read_conversations(const fs::path& path) {
  std::vector<Conversation> conversations;
  for (const fs::path& file : files_of(path)) read_lines(file, conversations);
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
  require(length > 0, "conversations of {} tokens hold nothing", length);
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
