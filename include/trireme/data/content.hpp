#pragma once

#include <string>
#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/data/image_dataset.hpp"
#include "trireme/data/table.hpp"
#include "trireme/data/token_dataset.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// What a run trains on, in words that differ where the content does, however it is stored: a size and a digest. Of files:
// content_at() in core/file_content.hpp.
std::string content_of(std::string_view text);
std::string content_of(const ImageDataset& images);  // their pixels and labels
std::string content_of(const Table& table);          // its features, labels and targets, in the order of its rows
std::string content_of(const TokenDataset& tokens);  // of a file, that of the file and which part it is

}  // namespace data
}  // namespace trireme
