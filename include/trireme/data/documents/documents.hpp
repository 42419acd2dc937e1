#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Documents of different length as tokens, each with what a model is to say after every token.
//
//   data::Documents documents;
//   documents.add(tokenizer.encode(text));                                                  // every token is learnt
//   documents.add({.tokens = {5, 6, 7, 8, 2}, .targets = {data::no_target, 7, 8, 2, data::no_target}});  // not 6: a prompt
class Documents {
 public:
  struct Document {
    std::span<const std::int32_t> tokens;
    std::span<const std::int32_t> targets;  // as many: the token that follows, or no_target
  };

  // Each token but the first is the target of the one before it; the last has none. Without a token it throws Error.
  void add(std::span<const std::int32_t> tokens);
  // Targets that are not as many as the tokens throw Error.
  void add(const Document& document);

  std::int64_t size() const { return static_cast<std::int64_t>(ends_.size()); }
  std::int64_t num_tokens() const { return static_cast<std::int64_t>(tokens_.size()); }
  Document operator[](std::int64_t index) const;  // valid until the next add()

 private:
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> targets_;
  std::vector<std::int64_t> ends_;  // of each document, in tokens_
};

}  // namespace data
}  // namespace trireme
