#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "trireme/tokenizers/chat/chat_template.hpp"

namespace trireme::tokenizers {

// A normal form of a chat template: templates with the same form give the same text for messages with text content, without a
// generation prompt. The form does not depend on how texts are quoted, joined and divided among tags, nor on white space in
// tags, names of variables, messages of exceptions and what depends on add_generation_prompt. bos_token and eos_token are
// replaced by `marks`. std::nullopt if the template uses Jinja features that are not supported here.
std::optional<std::string> jinja_form(std::string_view source, const TextMarks& marks);

}  // namespace trireme::tokenizers
