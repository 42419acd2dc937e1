#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"
#include "trireme/files/location.hpp"
#include "trireme/tokenizers/codecs/tokenizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace tokenizers {

struct Message {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
  bool learnt = true;  // of an assistant's: false: it is in the text, and not learnt
};

// How the tokens are spelled that begin and end a text, as <s> and </s>: transformers' bos_token and eos_token. Empty: there is
// none.
struct TextMarks {
  std::string begin;
  std::string end;
};

// By tokenizer_config.json, special_tokens_map.json or config.json of a model's folder, or of the folder of the file that is
// named; else those of the common names that the tokenizer has. Of bytes, texts end with the byte 0.
TextMarks text_marks(const Tokenizer& tokenizer, const Location& path);

struct ChatText {
  std::string text;
  std::vector<Range> learnt;  // bytes: the assistant's turns that are learnt, with what ends them
};

struct ChatTokens {
  std::vector<std::int32_t> tokens;
  std::vector<bool> learnt;  // of each token, whether it is one of an answer that is learnt
};

// How a conversation becomes a text for a model, as by apply_chat_template of transformers.
//
//   const tokenizers::ChatTemplate chat("chatml", tokenizer, tokenizers::text_marks(tokenizer, folder));
//   const auto [tokens, learnt] = chat.encode({{"user", "Hello"}, {"assistant", "Good day"}});
//
//   chatml   <|im_start|>user\n...<|im_end|>\n, without a system message of its own
//   llama3   <|start_header_id|>user<|end_header_id|>\n\n...<|eot_id|>, of Llama 3
//   llama2   <s>[INST] <<SYS>>\n...\n<</SYS>>\n\n... [/INST] ... </s>
//   mistral  <s>[INST] ... [/INST]...</s>; a system message begins the first turn
//   zephyr   <|user|>\n...</s>\n
//   alpaca   ### Instruction:\n...\n\n### Response:\n..., after the system message or Alpaca's own
//   plain    the contents one after the other, each answer with the token that ends a text
class ChatTemplate {
 public:
  // An unknown name, or special tokens of the template that the tokenizer lacks, are an Error. Bytes spell them.
  ChatTemplate(std::string_view name, const Tokenizer& tokenizer, const TextMarks& marks);

  static std::vector<std::string> names();
  // The name of what a model's folder has in chat_template.jinja or in tokenizer_config.json, or that of a file's folder; none:
  // it has no template, or one that is not known. One is known where its whole text is, but for spellings that change nothing:
  // white space and quotes within tags, names of variables, what is said to begin an answer. What jinja() gives is known.
  static std::optional<std::string> known_in(const Location& path, const Tokenizer& tokenizer);
  // Which file of the folder has a template, known or not; none: it has no template.
  static std::optional<Location> file_in(const Location& path);

  // A role that is unknown or out of order is an Error.
  ChatText render(std::span<const Message> messages) const;
  // The tokens of the text: alpaca and plain with those that the tokenizer puts around it. A token that has any byte of what is
  // learnt is learnt.
  ChatTokens encode(std::span<const Message> messages) const;
  // The template as a folder's chat_template.jinja has it: apply_chat_template of transformers then gives the same text, and
  // with add_generation_prompt what is before an answer. Of alpaca and plain the text begins with the tokens that the tokenizer
  // puts before it, as apply_chat_template adds none.
  std::string jinja() const;

 private:
  struct Style {
    std::string begin = {}, end = {};                      // bos_token and eos_token of its template
    std::string opening = {};                              // of the text
    std::string before_system = {}, after_system = {};     // around a system message
    std::string before_user = {}, after_user = {};         // around a user's
    std::string before_answer = {};                        // before the assistant's, and not learnt
    std::string begin_of_answer = {}, end_of_answer = {};  // around it, and learnt
    std::string after_answer = {};                         // and not learnt
    std::string system = {};                               // of a conversation that has none
    std::vector<std::string> special = {};                 // these have to be tokens
    bool system_in_user = false;                           // the first user's message begins with it
    bool alternates = false;                               // user and assistant take turns
    bool trims = false;                                    // white space around contents
    bool as_text = false;                                  // the tokenizer puts its tokens around
  };
  static std::optional<Style> style_of(std::string_view name, const TextMarks& marks);
  // The first of the style's tokens that the tokenizer lacks.
  static std::optional<std::string> missing_token(const Style& style, const Tokenizer& tokenizer);
  void check_order(std::span<const Message> messages) const;

  std::string name_;
  Tokenizer tokenizer_;
  Style style_;
};

}  // namespace tokenizers
}  // namespace trireme
