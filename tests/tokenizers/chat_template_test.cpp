#include "trireme/tokenizers/chat/chat_template.hpp"

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

// The text with learnt parts in brackets and \0 as $.
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
  CHECK_THROWS_WITH(encode(chatml, {{"user", "4"}, {"system", "5"}}), ContainsSubstring("message 1 has the role system"));
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
  CHECK(ChatTemplate::file_in(folder.path()) == std::nullopt);
  write(config, "{\"chat_template\": ");
  CHECK_THROWS_WITH(ChatTemplate::known_in(folder.path(), bytes), ContainsSubstring("no JSON object: byte 19"));
  const std::string chatml = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}";
  write(config, in_config(chatml));
  CHECK(ChatTemplate::known_in(folder.path(), bytes) == "chatml");
  CHECK(ChatTemplate::known_in(folder.path() / "tokenizer.json", bytes) == "chatml");
  write(config, in_config("{% if not system %}You are a model{% endif %}" + chatml));
  CHECK(ChatTemplate::known_in(folder.path(), bytes) == std::nullopt);
  CHECK(ChatTemplate::file_in(folder.path()) == config);
  write(config, nlohmann::json{{"chat_template", {{{"name", "default"}, {"template", chatml}}}}}.dump());
  CHECK(ChatTemplate::known_in(folder.path(), bytes) == "chatml");
  write(folder.path() / "chat_template.jinja", "{{ messages }}");
  CHECK(ChatTemplate::known_in(folder.path(), bytes) == std::nullopt);
  CHECK(ChatTemplate::file_in(folder.path()) == folder.path() / "chat_template.jinja");
  for (const std::string& name : ChatTemplate::names()) {
    write(folder.path() / "chat_template.jinja", ChatTemplate(name, bytes, tokenizers::text_marks(bytes, "")).jinja());
    CHECK(ChatTemplate::known_in(folder.path(), bytes) == name);
  }
}

TEST_CASE("a template is known by its whole text, however it is spelled") {
  const tests::TemporaryFolder folder;
  const auto known = [&](const std::string& jinja) {
    write(folder.path() / "chat_template.jinja", jinja);
    return ChatTemplate::known_in(folder.path(), bytes).value_or("none");
  };
  // ChatML with a prompt for an answer, as most have it.
  CHECK(known("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
              "'\\n'}}"
              "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}") == "chatml");
  CHECK(known("{%- if not add_generation_prompt is defined -%}\n  {% set add_generation_prompt = false %}\n{% endif -%}\n"
              "{%- for x in messages -%}\n  {{- \"<|im_start|>\" ~ x.role ~ \"\n\" + (x.content + '<|im_end|>\\n') -}}\n"
              "{%- endfor -%}\n{# the end #}\n") == "chatml");
  CHECK(known("{% for m in messages %}{% if m['role'] == 'user' %}{{ '<|im_start|>user\\n' + m['content'] + '<|im_end|>\\n' }}"
              "{% elif (m['role'] == 'assistant') %}{{ '<|im_start|>assistant\\n' + m['content'] + '<|im_end|>\\n' }}"
              "{% else %}{{ '<|im_start|>system\\n' + m['content'] + '<|im_end|>\\n' }}{% endif %}{% endfor %}") == "chatml");
  // Zephyr on lines of their own, whose ends are dropped behind statements alone.
  const std::string zephyr =
      "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\\n' + message['content'] + eos_token "
      "}}\n"
      "{% elif message['role'] == 'system' %}\n{{ '<|system|>\\n' + message['content'] + eos_token }}\n"
      "{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\\n'  + message['content'] + eos_token }}\n{% endif %}\n"
      "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}";
  CHECK(known(zephyr) == "zephyr");
  CHECK(known(zephyr + "\n") == "zephyr");
  CHECK(known(zephyr + "\n\n\n") == "none");
  CHECK(known("{% for m in messages %}{{ '<|' + m['role'] + '|>\\n' }}{% if m['role'] == 'assistant' %}{% generation %}"
              "{{ m['content'] + eos_token }}{% endgeneration %}{% else %}{{ m['content'] + eos_token }}{% endif %}{{ '\\n' }}"
              "{% endfor %}") == "zephyr");
  const std::string llama3 =
      "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + "
      "message['role'] + "
      "'<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}"
      "{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}";
  const std::string header = "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}";
  CHECK(known(llama3 + header) == "llama3");
  CHECK(known(llama3 + "{% if add_generation_prompt %}" + header + "{% endif %}") == "llama3");
  CHECK(known(llama3 + "{% if add_generation_prompt %}" + header + "{% else %}{{ eos_token }}{% endif %}") == "none");
  const std::string turns =
      "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate') }}"
      "{% endif %}";
  const std::string llama2 =
      "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = "
      "messages[0]['content'] %}"
      "{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages "
      "%}" +
      turns +
      "{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + "
      "'\\n<</SYS>>\\n\\n' + "
      "message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}"
      "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
      "{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}";
  CHECK(known(llama2) == "llama2");
  const std::string mistral =
      "{{ bos_token }}{% for message in messages %}" + turns +
      "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
      "{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}"
      "{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}";
  CHECK(known(mistral) == "mistral");
  const auto changed = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  CHECK(known(changed(mistral, "+ eos_token", "+ eos_token + ' '")) == "none");
  CHECK(known(changed(llama2, "' '  + content.strip()", "' '  + content")) == "none");
  CHECK(known(changed(zephyr, "'<|user|>\\n' + message['content'] + eos_token", "'<|user|>\\n' + message['content']")) ==
        "none");
  // Without a header of the system's, and with answers whose header ends the user's turn.
  CHECK(known("{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] %}{% endif %}"
              "{% if system is defined %}{{ system }}{% endif %}{% for m in messages %}{% set content = m['content'] %}"
              "{% if m['role'] == 'user' %}{{ '<|im_start|>user\\n' + content + '<|im_end|>\\n<|im_start|>assistant\\n' }}"
              "{% elif m['role'] == 'assistant' %}{{ content + '<|im_end|>' + '\\n' }}{% endif %}{% endfor %}") == "none");
  // Texts that are not Jinja, or Jinja that is not supported here.
  for (const char* const text :
       {"{% for m in messages %}", "{{ '<|im_start|>", "{% endfor %}", "{% if %}", "{% macro a() %}{% endmacro %}",
        "{% raw %}{{ x }}{% endraw %}", "{{ '\\u0041' }}", "{%+ if x %}{% endif %}", "{#", "{", "{{ }}"}) {
    CHECK(known(text) == "none");
  }
  CHECK(known("{{ " + std::string(100'000, '(') + " }}") == "none");
  std::string nested;
  for (int level = 0; level < 10'000; ++level) nested += "{% if x %}";
  CHECK(known(nested) == "none");
}
