#pragma once

#include <string>
#include <string_view>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// What is wrong with a JSON text, as "byte 12: unexpected ','; expected string literal", counted from 1. Empty: nothing.
std::string json_fault(std::string_view text);

// The end of a message on a text that is no JSON object: ": byte 12: ...", or nothing where it is JSON of another kind.
std::string why_no_json(std::string_view text);

}  // namespace trireme
