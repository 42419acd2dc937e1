#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Tokenized documents of different lengths, with a target for each token.
//
//   data::Documents documents;
//   documents.add(tokenizer.encode(text));                                                  // all tokens are learnt
//   documents.add({.tokens = {5, 6, 7, 8, 2}, .targets = {data::no_target, 7, 8, 2, data::no_target}});  // {5, 6} is a prompt
class Documents {
 public:
  struct Document {
    std::span<const std::int32_t> tokens;
    std::span<const std::int32_t> targets;  // one for each token: the next token, or no_target
  };

  // Adds a document in which each token's target is the next token; the last token has no_target. Throws Error if there are no
  // tokens.
  void add(std::span<const std::int32_t> tokens);
  // Throws Error if there are no tokens, or if the numbers of tokens and targets differ.
  void add(const Document& document);

  std::int64_t size() const { return static_cast<std::int64_t>(ends_.size()); }
  std::int64_t num_tokens() const { return static_cast<std::int64_t>(tokens_.size()); }
  Document operator[](std::int64_t index) const;  // valid until the next add()

 private:
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> targets_;
  std::vector<std::int64_t> ends_;  // ends of documents in tokens_
};

std::string content_of(const Documents& documents);  // a text that identifies the documents

}  // namespace data
}  // namespace trireme
