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
  std::string file = {};  // the file it was read from, for error messages
  std::int64_t line = 0;  // from 1
};

// Reads conversations from a file with one JSON object per line, or from all .jsonl files in a folder and its subfolders,
// sorted by path. Hidden names are skipped and links are followed, as in read_text().
//
//   {"prompt": "What is 2 + 2?", "completion": "4"}
//   {"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]}
//
// "prompt" is a message of the user, "completion" one of the assistant. Training learns the assistant's messages; a message
// with "weight": 0 or "train": false stays in the text but is not learnt.
//
// Throws Error with file and line in these cases:
// - A line is not such an object, has no message to learn, or has an empty message.
// - A message has a key that no chat template writes, such as tool_calls.
// - A line has tools or a system prompt beside the messages.
// Other keys of a line are ignored. For invalid JSON the Error also has the byte and the reason.
std::vector<Conversation> read_conversations(const Location& path);

// A conversation as tokens. Targets are the assistant's messages, each with its end token; all other targets are no_target.
struct EncodedConversation {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;
};
EncodedConversation encode_conversation(const tokenizers::ChatTemplate& chat, const Conversation& conversation);

struct EncodedConversations {
  Documents documents;            // each ends with its last learnt token
  std::int64_t num_learnt = 0;    // number of targets in all documents
  std::int64_t num_cut = 0;       // conversations that were cut to their first `length` tokens
  std::int64_t num_left_out = 0;  // conversations without a learnt token in the first `length`
};

// Encodes conversations and cuts them to `length` tokens. Throws Error if all conversations are left out.
EncodedConversations encode_conversations(const tokenizers::ChatTemplate& chat, std::span<const Conversation> conversations,
                                          std::int64_t length);

}  // namespace data
}  // namespace trireme
