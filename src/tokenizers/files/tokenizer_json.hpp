#pragma once

#include <memory>

#include "tokenizers/codecs/codec.hpp"
#include "trireme/files/location.hpp"

namespace trireme::tokenizers {

// Reads a tokenizer.json of Hugging Face's tokenizers.
std::shared_ptr<const detail::Codec> read_tokenizer_json(const Location& path);

}  // namespace trireme::tokenizers
