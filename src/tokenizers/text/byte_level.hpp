#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trireme::tokenizers {

// The bytes that GPT-2's way of spelling stands for, in which every byte is a visible character: "Ġworld" is " world". None:
// there are other characters in it.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

}  // namespace trireme::tokenizers
