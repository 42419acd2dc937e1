#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/codecs/codec.hpp"
#include "trireme/tokenizers/files/read_tokenizer.hpp"

namespace trireme::tokenizers {

// A token in base64, a space and its number.
bool is_tiktoken_line(std::string_view line);

// Of the lines of a file of tiktoken, which messages call `path`.
std::shared_ptr<const detail::Codec> tiktoken_codec(const std::vector<std::string>& lines, const std::string& path,
                                                    const TiktokenOptions& options);

}  // namespace trireme::tokenizers
