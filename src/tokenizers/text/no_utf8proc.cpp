#include "tokenizers/text/normalizer.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tokenizers {
namespace {

[[noreturn]] void refuse(const char* what) {
  throw Error({.code = ErrorCode::not_available,
               .message = "this build has no utf8proc: a tokenizer that normalizes texts can't be read",
               .name = what,
               .hint = "install libutf8proc-dev and build again"});
}

}  // namespace

std::shared_ptr<const Normalizer> unicode_normalizer(UnicodeForm) { refuse("a normal form of Unicode"); }

std::shared_ptr<const Normalizer> lowercase_normalizer() { refuse("Lowercase"); }

std::shared_ptr<const Normalizer> bert_normalizer(const BertNormalizerOptions&) { refuse("BertNormalizer"); }

}  // namespace trireme::tokenizers
