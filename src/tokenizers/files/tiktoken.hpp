#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/codecs/codec.hpp"
#include "trireme/tokenizers/files/read_tokenizer.hpp"

namespace trireme::tokenizers {

// Whether a line is a token in base64, a space and a number.
bool is_tiktoken_line(std::string_view line);

// A codec from the lines of a tiktoken file. `path` is used in errors.
std::shared_ptr<const detail::Codec> tiktoken_codec(const std::vector<std::string>& lines, const std::string& path,
                                                    const TiktokenOptions& options);

}  // namespace trireme::tokenizers
