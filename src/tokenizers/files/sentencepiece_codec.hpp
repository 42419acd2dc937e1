#pragma once

#include <memory>

#include "tokenizers/codecs/codec.hpp"
#include "trireme/files/location.hpp"

namespace trireme::tokenizers {

// A tokenizer.model of sentencepiece. What stands around texts and what is added to its tokens says the folder.
std::shared_ptr<const detail::Codec> read_sentencepiece(const Location& path);

}  // namespace trireme::tokenizers
