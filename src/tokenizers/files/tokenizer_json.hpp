#pragma once

#include <filesystem>
#include <memory>

#include "tokenizers/codecs/codec.hpp"

namespace trireme::tokenizers {

// A tokenizer.json of Hugging Face's tokenizers.
std::shared_ptr<const detail::Codec> read_tokenizer_json(const std::filesystem::path& path);

}  // namespace trireme::tokenizers
