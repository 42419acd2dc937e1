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
  bool learnt = true;  // for the assistant: whether training learns the message; it is in the text in both cases
};

// The spellings of the tokens that begin and end a text, for example <s> and </s>. Hugging Face transformers calls them
// bos_token and eos_token. Empty: there is no such token.
struct TextMarks {
  std::string begin;
  std::string end;
};

// Reads the marks from tokenizer_config.json, special_tokens_map.json or config.json in `path`, a model's folder or a file in
// it. For marks that these files lack, takes common tokens that the tokenizer has, such as <s>. With Tokenizer::bytes(), texts
// end with the byte 0.
TextMarks text_marks(const Tokenizer& tokenizer, const Location& path);

struct ChatText {
  std::string text;
  std::vector<Range> learnt;  // byte ranges of the learnt answers, with the tokens that end them
};

struct ChatTokens {
  std::vector<std::int32_t> tokens;
  std::vector<bool> learnt;  // for each token, whether it belongs to a learnt answer
};

// Formats a conversation as text for a model, like apply_chat_template of Hugging Face transformers.
//
//   const tokenizers::ChatTemplate chat("chatml", tokenizer, tokenizers::text_marks(tokenizer, folder));
//   const auto [tokens, learnt] = chat.encode({{"user", "Hello"}, {"assistant", "Good day"}});
//
//   chatml   <|im_start|>user\n...<|im_end|>\n, no default system message
//   llama3   <|start_header_id|>user<|end_header_id|>\n\n...<|eot_id|> (Llama 3)
//   llama2   <s>[INST] <<SYS>>\n...\n<</SYS>>\n\n... [/INST] ... </s>
//   mistral  <s>[INST] ... [/INST]...</s>; a system message begins the first turn
//   zephyr   <|user|>\n...</s>\n
//   alpaca   ### Instruction:\n...\n\n### Response:\n..., after the system message or Alpaca's default system message
//   plain    the contents in sequence; each answer ends with the end token
class ChatTemplate {
 public:
  // Throws Error if the name is unknown or the tokenizer lacks special tokens of the template. Tokenizer::bytes() spells
  // special tokens as text.
  ChatTemplate(std::string_view name, const Tokenizer& tokenizer, const TextMarks& marks);

  static std::vector<std::string> names();
  // The name of the template in chat_template.jinja or tokenizer_config.json of `path`, a model's folder or a file in it.
  // std::nullopt if there is no template or if the template is unknown. A template is known if its whole text matches, except
  // for white space and quotes within tags, names of variables, and the part that begins an answer. Templates that jinja()
  // made are known.
  static std::optional<std::string> known_in(const Location& path, const Tokenizer& tokenizer);
  // The file of the folder that has a template, known or unknown; std::nullopt if there is no template.
  static std::optional<Location> file_in(const Location& path);

  // Throws Error for a role that is unknown or out of order.
  ChatText render(std::span<const Message> messages) const;
  // The tokens of the text. alpaca and plain include the tokens that the tokenizer adds around a text. A token is learnt if any
  // of its bytes is learnt.
  ChatTokens encode(std::span<const Message> messages) const;
  // The template in Jinja, for chat_template.jinja of a model's folder. apply_chat_template of Hugging Face transformers then
  // returns the same text; with add_generation_prompt, it adds the beginning of an answer. For alpaca and plain the text
  // begins with the tokens that the tokenizer adds before a text, because apply_chat_template adds none.
  std::string jinja() const;

 private:
  struct Style {
    std::string begin = {}, end = {};                      // the template's bos_token and eos_token
    std::string opening = {};                              // begins the text
    std::string before_system = {}, after_system = {};     // around a system message
    std::string before_user = {}, after_user = {};         // around a user message
    std::string before_answer = {};                        // before an answer, not learnt
    std::string begin_of_answer = {}, end_of_answer = {};  // around the answer, learnt
    std::string after_answer = {};                         // after an answer, not learnt
    std::string system = {};                               // default system message
    std::vector<std::string> special = {};                 // must be tokens of the tokenizer
    bool system_in_user = false;                           // the system message is part of the first user message
    bool alternates = false;                               // user and assistant must alternate
    bool trims = false;                                    // trims white space around contents
    bool as_text = false;                                  // the tokenizer adds its tokens around the text
  };
  static std::optional<Style> style_of(std::string_view name, const TextMarks& marks);
  // The style's first token that the tokenizer lacks.
  static std::optional<std::string> missing_token(const Style& style, const Tokenizer& tokenizer);
  void check_order(std::span<const Message> messages) const;

  std::string name_;
  Tokenizer tokenizer_;
  Style style_;
};

}  // namespace tokenizers
}  // namespace trireme
