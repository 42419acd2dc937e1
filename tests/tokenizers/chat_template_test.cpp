#include "trireme/tokenizers/chat_template.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;
using tokenizers::ChatTemplate;
using tokenizers::Message;
using tokenizers::Tokenizer;

namespace {

const Tokenizer bytes = Tokenizer::bytes();

// What is learnt in brackets; \0 as $.
std::string marked(const char* name, const std::vector<Message>& messages) {
  const auto chat = ChatTemplate(name, bytes, tokenizers::text_marks(bytes, "")).encode(messages);
  std::string text;
  for (std::size_t at = 0; at < chat.tokens.size(); ++at) {
    const bool before = at > 0 && chat.learnt[at - 1];
    if (chat.learnt[at] != before) text += before ? "]" : "[";
    text += chat.tokens[at] == 0 ? '$' : static_cast<char>(chat.tokens[at]);
  }
  return !chat.learnt.empty() && chat.learnt.back() ? text + "]" : text;
}

void write(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

std::string in_config(const std::string& jinja) { return nlohmann::json{{"chat_template", jinja}}.dump(); }

}  // namespace

TEST_CASE("answers and what ends them are learnt") {
  const std::vector<Message> talk{
      {"system", "be kind"}, {"user", " hi"}, {"assistant", "yo "}, {"user", "so?"}, {"assistant", "é"}};
  CHECK(marked("plain", {{"user", "2+2="}, {"assistant", "4"}}) == "2+2=[4$]");
  CHECK(marked("plain", talk) == "be kind hi[yo $]so?[é$]");
  CHECK(marked("chatml", talk) ==
        "<|im_start|>system\nbe kind<|im_end|>\n<|im_start|>user\n hi<|im_end|>\n<|im_start|>assistant\n[yo <|im_end|>]\n"
        "<|im_start|>user\nso?<|im_end|>\n<|im_start|>assistant\n[é<|im_end|>]\n");
  CHECK(marked("llama2", talk) == "<s>[INST] <<SYS>>\nbe kind\n<</SYS>>\n\n hi [/INST][ yo $]<s>[INST] so? [/INST][ é $]");
  CHECK(marked("alpaca", {{"user", "Add."}, {"assistant", "4"}}) ==
        "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
        "### Instruction:\nAdd.\n\n### Response:\n[4$]");
}

TEST_CASE("white space is trimmed as Python does") {
  const auto text =
      ChatTemplate("llama3", bytes, {.begin = "B", .end = ""})
          .render(std::vector<Message>{{"user", "\u3000\u00a0 \x1f 4 \u2003 5\u0085\n"}, {"assistant", "\u200b6\u2029"}});
  CHECK(text.text ==
        "B<|start_header_id|>user<|end_header_id|>\n\n4 \u2003 5<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n\u200b6<|eot_id|>");
}

TEST_CASE("a conversation that a template can't say is refused") {
  const ChatTemplate mistral("mistral", bytes, {}), chatml("chatml", bytes, {});
  const auto encode = [](const ChatTemplate& chat, const std::vector<Message>& messages) { chat.encode(messages); };
  CHECK_THROWS_WITH(encode(chatml, {{"tool", "4"}}), ContainsSubstring("message 0 has the role \"tool\""));
  CHECK_THROWS_WITH(encode(chatml, {{"user", "4"}, {"system", "5"}}), ContainsSubstring("message 1 is of the system"));
  CHECK_THROWS_WITH(encode(chatml, {}), ContainsSubstring("no messages"));
  CHECK_NOTHROW(encode(chatml, {{"user", "a"}, {"user", "b"}}));
  CHECK_THROWS_WITH(encode(mistral, {{"user", "a"}, {"user", "b"}}), ContainsSubstring("user and assistant take turns"));
  CHECK_THROWS_WITH(encode(mistral, {{"assistant", "a"}}), ContainsSubstring("the user begins"));
  CHECK_THROWS_WITH(ChatTemplate("chatml2", bytes, {}), ContainsSubstring("use one of chatml, llama3, llama2"));
}

TEST_CASE("a template is known by the files of a folder") {
  const tests::TemporaryFolder folder;
  const auto config = folder.path() / "tokenizer_config.json";
  CHECK(ChatTemplate::known_in(folder.path(), bytes) == std::nullopt);
  const std::string chatml = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}";
  write(config, in_config(chatml));
  CHECK(ChatTemplate::known_in(folder.path(), bytes) == "chatml");
  CHECK(ChatTemplate::known_in(folder.path() / "tokenizer.json", bytes) == "chatml");
  write(config, in_config("{% if not system %}You are a model{% endif %}" + chatml));
  CHECK(ChatTemplate::known_in(folder.path(), bytes) == std::nullopt);
  write(config, R"({"chat_template": [{"name": "default", "template": "[INST] <<SYS>> {{ ' ' + text }}"}]})");
  CHECK(ChatTemplate::known_in(folder.path(), bytes) == "llama2");
  write(folder.path() / "chat_template.jinja", "<|start_header_id|>{{ text | trim }}<|eot_id|>");
  CHECK(ChatTemplate::known_in(folder.path(), bytes) == "llama3");
  write(folder.path() / "chat_template.jinja", "{{ messages }}");
  CHECK(ChatTemplate::known_in(folder.path(), bytes) == std::nullopt);
  for (const std::string& name : ChatTemplate::names()) {
    write(folder.path() / "chat_template.jinja", ChatTemplate(name, bytes, tokenizers::text_marks(bytes, "")).jinja());
    CHECK(ChatTemplate::known_in(folder.path(), bytes) == name);
  }
}
