#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme::tokenizers {

// Known Jinja spellings of the chat template with this name.
std::vector<std::string> known_templates(std::string_view name);

}  // namespace trireme::tokenizers
