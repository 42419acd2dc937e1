#pragma once

#include <string>
#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Reads a text file, or all regular files in a folder and its subfolders, sorted by path and joined by newlines. Skips hidden
// files and folders (names that begin with a dot) and follows links. Throws Error{io} for a broken link and for a link to a
// folder that contains the link. Throws Error{invalid_argument} with the path for a file that is not text: compressed, an
// image, or with a zero byte.
std::string read_text(const Location& path);

// A text that identifies the content: size and digest. For files see content_at() in files/file_content.hpp.
std::string content_of(std::string_view text);

}  // namespace data
}  // namespace trireme
