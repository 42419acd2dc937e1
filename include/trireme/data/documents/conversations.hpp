#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/documents/documents.hpp"
#include "trireme/files/location.hpp"
#include "trireme/tokenizers/chat/chat_template.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct Conversation {
  std::vector<tokenizers::Message> messages;
  std::string file = {};  // where it was read, for messages
  std::int64_t line = 0;  // from 1
};

// Of a file whose lines are JSON objects, or of all .jsonl files in a folder and its subfolders, sorted by path, links as in
// read_text() and hidden ones passed over:
//
//   {"prompt": "What is 2 + 2?", "completion": "4"}
//   {"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]}
//
// A prompt is the user's message, a completion the assistant's. An answer with "weight": 0 or "train": false is in the text and
// not learnt. Keys of a message that no template writes, as tool_calls, are an Error, as are tools and a system prompt beside
// the messages; other keys of a line say nothing. A line that is no such object, without an answer that is learnt or with an
// empty one, is an Error that names file and line, and of what is no JSON the byte and the reason.
std::vector<Conversation> read_conversations(const Location& path);

// Tokens and what is learnt: the answers of the assistant, each with the token that ends it; other targets are no_target.
struct EncodedConversation {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;
};
EncodedConversation encode_conversation(const tokenizers::ChatTemplate& chat, const Conversation& conversation);

struct EncodedConversations {
  Documents documents;            // without tokens behind the last that is learnt
  std::int64_t num_learnt = 0;    // targets in all
  std::int64_t num_cut = 0;       // conversations that had more than `length` tokens: their first ones are there
  std::int64_t num_left_out = 0;  // others, in whose first `length` tokens no answer begins
};

// Conversations of which none fits are an Error.
EncodedConversations encode_conversations(const tokenizers::ChatTemplate& chat, std::span<const Conversation> conversations,
                                          std::int64_t length);

}  // namespace data
}  // namespace trireme
