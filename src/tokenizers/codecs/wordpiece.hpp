#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tokenizers/codecs/model.hpp"
#include "tokenizers/codecs/token_spellings.hpp"

namespace trireme::tokenizers {

struct WordPieceOptions {
  std::string unknown = "[UNK]";
  std::string continuing_prefix = "##";  // prefix of tokens inside a word
  std::int64_t most_characters = 100;    // longer words become `unknown`
};

// WordPiece: repeatedly takes the longest token that matches the begin of the rest of a word (Wu et al. 2016, arXiv
// 1609.08144).
class WordPiece : public Model {
 public:
  WordPiece(std::shared_ptr<const TokenSpellings> tokens, const WordPieceOptions& options);

  void encode_word(std::string_view word, std::vector<std::int32_t>& tokens, std::vector<std::int32_t>* sizes) const override;

 private:
  // An edge of the trie of all tokens: it leads from a node by a byte.
  struct Edge {
    std::uint64_t from = ~std::uint64_t{0};  // node * 256 + byte
    std::int32_t to = 0;
    std::int32_t token = -1;  // the token that ends at `to`, or -1
  };
  void add(std::string_view text, std::int32_t from, std::int32_t token);
  const Edge* find(std::int32_t node, char byte) const;
  Edge& edge(std::int32_t node, char byte);
  void grow();

  std::shared_ptr<const TokenSpellings> tokens_;
  std::vector<Edge> edges_;
  std::size_t count_ = 0;
  std::int32_t nodes_ = 2;  // node 0 is the root at the begin of a word, node 1 inside a word
  std::int32_t unknown_;
  std::int64_t most_characters_;
};

}  // namespace trireme::tokenizers
