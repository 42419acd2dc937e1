#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tokenizers/codec.hpp"
#include "trireme/tokenizers/read_tokenizer.hpp"

namespace trireme::tokenizers {

// Of the lines of a file of tiktoken, which messages call `path`.
std::shared_ptr<const detail::Codec> tiktoken_codec(const std::vector<std::string>& lines, const std::string& path,
                                                    const TiktokenOptions& options);

}  // namespace trireme::tokenizers
