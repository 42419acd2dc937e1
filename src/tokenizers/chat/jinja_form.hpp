#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "trireme/tokenizers/chat/chat_template.hpp"

namespace trireme::tokenizers {

// A normal form of a chat template. Templates of the same form give the same text of messages that are texts, where no prompt
// for an answer is asked for. It does not depend on how texts are quoted, joined and divided among tags, nor on white space in
// tags, names of variables, messages of exceptions and what follows add_generation_prompt; bos_token and eos_token are `marks`.
// None: the template has what is not read here.
std::optional<std::string> jinja_form(std::string_view source, const TextMarks& marks);

}  // namespace trireme::tokenizers
