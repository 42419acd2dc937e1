#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/documents/document_piece.hpp"
#include "trireme/data/shards/token_shards.hpp"
#include "trireme/data/text/token_batch.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct PackedRowsOptions {
  std::int64_t length = 1024;                           // tokens of a row
  LongDocuments long_documents = LongDocuments::split;  // documents with more tokens than a row
  std::int64_t documents_at_once = 4096;                // neighbouring documents that are packed together
  std::int32_t pad_token = 0;                           // fills up rows; never a target
};

// The documents of token shards as a dataset of rows of `length` tokens, each row with as many whole documents as fit. Memory
// holds only one number for every `documents_at_once` documents. Only documents that lie in the same stretch of the shards
// share rows, by best fit (see DocumentRows); the packing depends only on the documents' lengths. The last token of a document
// has no target.
//
//   const data::PackedRows rows(data::TokenShards(files), {.length = 1024});
//   const data::Loader loader(rows, {.batch = run.batch()});
//
// The constructor reads the lengths of all documents, on all threads of this rank.
class PackedRows {
 public:
  // Throws Error for a document that is refused, an option out of its range and a broken shard.
  explicit PackedRows(TokenShards documents, const PackedRowsOptions& options = {});

  std::int64_t size() const noexcept;
  std::int64_t length() const noexcept;
  std::int64_t tokens_per_sample() const noexcept { return length(); }
  std::int64_t num_cut_tokens() const noexcept;  // tokens that truncation dropped
  double padding() const noexcept;               // the share of padding in all rows
  const TokenShards& documents() const noexcept;
  std::string content() const;

  // A block of this many rows, which starts at a multiple of this number, is fastest to read as a whole. Loader shuffles such
  // blocks.
  std::int64_t neighbours() const noexcept;

  using Piece = DocumentPiece;
  std::vector<Piece> pieces_of(std::int64_t row) const;  // in their order in the row

  // tokens, targets and document_starts [rows.size(), length()]; each padding token is a document of its own.
  TokenBatch collate(std::span<const std::int64_t> rows, std::int64_t first_sample) const;

 private:
  struct Packing;
  std::shared_ptr<const Packing> packing_;
};

inline std::string content_of(const PackedRows& rows) { return rows.content(); }

}  // namespace data
}  // namespace trireme
