#include "tokenizers/chat/known_templates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace trireme::tokenizers {
namespace {

// The template of one turn; ROLE stands for the role.
struct Turn {
  const char* opening;  // the begin of the text
  const char* turn;
};

std::string with_role(std::string turn, std::string_view role) {
  constexpr std::string_view sign = "ROLE";
  for (std::size_t at = turn.find(sign); at != turn.npos; at = turn.find(sign, at + role.size())) {
    turn.replace(at, sign.size(), role);
  }
  return turn;
}

// Templates for turns that differ only in the role: the same code for all roles, or a branch for each role in any order, where
// the last one may be an else.
std::vector<std::string> templates_of(const Turn& each) {
  const auto loop = [&each](const std::string& body) {
    return fmt::format("{}{{% for m in messages %}}{}{{% endfor %}}", each.opening, body);
  };
  const std::string for_all = with_role(each.turn, "{{ m['role'] }}");
  std::vector<std::string> all{loop(for_all)};
  std::array<std::string_view, 3> roles{"assistant", "system", "user"};
  do {
    const auto branch = [&](const char* word, std::string_view role) {
      return fmt::format("{{% {} m['role'] == '{}' %}}{}", word, role, with_role(each.turn, role));
    };
    const std::string two = branch("if", roles[0]) + branch("elif", roles[1]);
    all.push_back(loop(two + branch("elif", roles[2]) + "{% endif %}"));
    all.push_back(loop(two + "{% else %}" + with_role(each.turn, roles[2]) + "{% endif %}"));
    all.push_back(loop(two + "{% else %}" + for_all + "{% endif %}"));
  } while (std::ranges::next_permutation(roles).found);
  return all;
}

// Llama 3: its own template writes bos_token before the first turn, and its first version always ends with the begin of an
// answer.
std::vector<std::string> llama3_templates() {
  const char* const turn = "<|start_header_id|>ROLE<|end_header_id|>\n\n{{ m['content'] | trim }}<|eot_id|>";
  std::vector<std::string> all = templates_of({.opening = "{{ bos_token }}", .turn = turn});
  all.push_back(fmt::format(
      "{{% if messages[0]['role'] == 'system' %}}{{% set first = 1 %}}{{% else %}}{{% set first = 0 %}}{{% endif %}}"
      "{{{{ bos_token }}}}{{% for m in messages %}}{{% if (m['role'] == 'user') != (loop.index0 % 2 == first) %}}"
      "{{{{ raise_exception('turns') }}}}{{% endif %}}{}{{% endfor %}}",
      with_role(turn, "{{ m['role'] }}")));
  const std::string own =
      "{% set turns = messages %}{% for m in turns %}"
      "{% set text = '<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n' + m['content'] | trim + '<|eot_id|>' %}"
      "{% if loop.first %}{% set text = bos_token + text %}{% endif %}{{ text }}{% endfor %}";
  all.push_back(own);
  all.push_back(own + "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}");
  return all;
}

constexpr const char* takes_turns =
    "{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns') }}{% endif %}";

// Llama 2: the system message is part of the first turn.
std::vector<std::string> llama2_templates() {
  const std::string begin = fmt::format(
      "{{% if messages[0]['role'] == 'system' %}}{{% set turns = messages[1:] %}}"
      "{{% set system = messages[0]['content'] %}}"
      "{{% else %}}{{% set turns = messages %}}{{% set system = false %}}{{% endif %}}"
      "{{% for m in turns %}}{}"
      "{{% if loop.first and system != false %}}"
      "{{% set text = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + m['content'] %}}"
      "{{% else %}}{{% set text = m['content'] %}}{{% endif %}}"
      "{{% if m['role'] == 'user' %}}{{{{ bos_token + '[INST] ' + text | trim + ' [/INST]' }}}}",
      takes_turns);
  const std::string end = "{% elif m['role'] == 'assistant' %}{{ ' ' + text | trim + ' ' + eos_token }}{% endif %}{% endfor %}";
  return {begin + end, begin + "{% elif m['role'] == 'system' %}{{ '<<SYS>>\\n' + text | trim + '\\n<</SYS>>\\n\\n' }}" + end,
          "{% set start = 0 %}{% if messages[0]['role'] == 'system' %}{% set start = 1 %}{% endif %}"
          "{% for m in messages[start:] %}{% set text = m['content'] %}{% if loop.first and start == 1 %}"
          "{% set text = '<<SYS>>\\n' + messages[0]['content'] + '\\n<</SYS>>\\n\\n' + text %}{% endif %}"
          "{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + text | trim + ' [/INST]' }}"
          "{% else %}{{ ' ' + text | trim + ' ' + eos_token }}{% endif %}{% endfor %}"};
}

// Mistral: templates without a system message, and one that begins the first turn with it.
std::vector<std::string> mistral_templates() {
  const std::string turns = fmt::format(
      "{{{{ bos_token }}}}{{% for m in messages %}}{}"
      "{{% if m['role'] == 'user' %}}{{{{ '[INST] ' + m['content'] + ' [/INST]' }}}}"
      "{{% elif m['role'] == 'assistant' %}}{{{{ m['content'] + eos_token }}}}",
      takes_turns);
  return {turns + "{% else %}{{ raise_exception('roles') }}{% endif %}{% endfor %}", turns + "{% endif %}{% endfor %}",
          "{{ bos_token }}{% set start = 0 %}{% if messages[0]['role'] == 'system' %}{% set start = 1 %}{% endif %}"
          "{% for m in messages[start:] %}{% set text = m['content'] %}{% if loop.first and start == 1 %}"
          "{% set text = messages[0]['content'] + '\\n\\n' + text %}{% endif %}"
          "{% if m['role'] == 'user' %}{{ '[INST] ' + text + ' [/INST]' }}"
          "{% else %}{{ text + eos_token }}{% endif %}{% endfor %}"};
}

}  // namespace

std::vector<std::string> known_templates(std::string_view name) {
  if (name == "chatml") {
    return templates_of({.opening = "", .turn = "<|im_start|>ROLE\n{{ m['content'] }}<|im_end|>{{ '\\n' }}"});
  }
  if (name == "zephyr") return templates_of({.opening = "", .turn = "<|ROLE|>\n{{ m['content'] + eos_token + '\\n' }}"});
  if (name == "llama3") return llama3_templates();
  if (name == "llama2") return llama2_templates();
  return name == "mistral" ? mistral_templates() : std::vector<std::string>{};
}

}  // namespace trireme::tokenizers
