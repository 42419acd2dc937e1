#include "tokenizers/files/sentencepiece_codec.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tokenizers {

std::shared_ptr<const detail::Codec> read_sentencepiece(const Location& path) {
  throw Error({.code = ErrorCode::not_available,
               .message = "this build has no sentencepiece: its models can't be read",
               .path = path.string(),
               .hint = "install libsentencepiece-dev and build again, or write a tokenizer.json by transformers"});
}

}  // namespace trireme::tokenizers
