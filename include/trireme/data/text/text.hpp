#pragma once

#include <string>
#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// The content of a file, or of all regular files in a folder and its subfolders, sorted by path and joined by a newline. Hidden
// files and folders, whose names begin with a dot, are passed over; links are followed, and one that leads nowhere or to a
// folder that it lies in is an Error{io}. What is no text, a packed file, a picture, anything with a zero byte, is an
// Error{invalid_argument} that names it.
std::string read_text(const Location& path);

// What a text holds, in words that differ where the content does: a size and a digest. Of files: content_at() in
// files/file_content.hpp.
std::string content_of(std::string_view text);

}  // namespace data
}  // namespace trireme
