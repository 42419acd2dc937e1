#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trireme::tokenizers {

// Decodes GPT-2's spelling of bytes, in which each byte is a visible character: "Ġworld" is " world". std::nullopt if it has
// other characters.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

// The character that spells a byte.
char32_t spelling_of(unsigned char byte);

}  // namespace trireme::tokenizers
