#pragma once

#include <memory>

#include "tokenizers/codecs/codec.hpp"
#include "trireme/files/location.hpp"

namespace trireme::tokenizers {

// Reads a sentencepiece tokenizer.model. Its folder defines the tokens around texts and added tokens.
std::shared_ptr<const detail::Codec> read_sentencepiece(const Location& path);

}  // namespace trireme::tokenizers
