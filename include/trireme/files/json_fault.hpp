#pragma once

#include <string>
#include <string_view>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// The syntax error of a JSON text, such as "byte 12: unexpected ','; expected string literal". Bytes count from 1. Empty if the
// text is valid.
std::string json_fault(std::string_view text);

// The end of an error message about a text that is not a JSON object: ": byte 12: ...", or empty if the text is valid JSON but
// not an object.
std::string why_no_json(std::string_view text);

}  // namespace trireme
