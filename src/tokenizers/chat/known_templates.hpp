#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme::tokenizers {

// Chat templates of Jinja that do what the template of this name does, each in one of its spellings.
std::vector<std::string> known_templates(std::string_view name);

}  // namespace trireme::tokenizers
