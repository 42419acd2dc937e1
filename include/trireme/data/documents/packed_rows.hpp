#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/documents/document_rows.hpp"
#include "trireme/data/shards/token_shards.hpp"
#include "trireme/data/text/token_batch.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct PackedRowsOptions {
  std::int64_t length = 1024;                           // tokens of a row
  LongDocuments long_documents = LongDocuments::split;  // those with more tokens than a row
  std::int64_t documents_at_once = 4096;                // so many neighbours share rows with each other alone
  std::int32_t pad_token = 0;                           // what fills a row; it is never a target
};

// The documents of token shards as a dataset of rows of `length` tokens, each with as many whole documents as fit. Nothing but
// a number for every `documents_at_once` documents is kept in memory. Documents that lie in the same stretch of the shards
// share rows, by best fit (see DocumentRows); which ones depends on their lengths alone. The last token of a document has no
// target.
//
//   const data::PackedRows rows(data::TokenShards(files), {.length = 1024});
//   const data::Loader loader(rows, {.batch = run.batch()});
//
// Making one reads the lengths of all documents, on all threads of this rank.
class PackedRows {
 public:
  // A document that is refused, options out of their range and shards that are broken throw Error.
  explicit PackedRows(TokenShards documents, const PackedRowsOptions& options = {});

  std::int64_t size() const noexcept;
  std::int64_t length() const noexcept;
  std::int64_t tokens_per_sample() const noexcept { return length(); }
  std::int64_t num_cut_tokens() const noexcept;  // of truncated documents
  double padding() const noexcept;               // the share of all rows' tokens that fill them
  const TokenShards& documents() const noexcept;
  std::string content() const;

  // So many rows, from a multiple of it on, are read fastest one after the other: what Loader shuffles by.
  std::int64_t neighbours() const noexcept;

  // Tokens [begin, begin + count) of a document.
  struct Piece {
    std::int64_t document = 0;
    std::int64_t begin = 0;
    std::int64_t count = 0;

    bool operator==(const Piece&) const = default;
  };
  std::vector<Piece> pieces_of(std::int64_t row) const;  // in their order in the row

  // tokens, targets and document_starts [rows.size(), length()]; padding is documents of one token.
  TokenBatch collate(std::span<const std::int64_t> rows, std::int64_t first_sample) const;

 private:
  class Packing;
  std::shared_ptr<const Packing> packing_;
};

inline std::string content_of(const PackedRows& rows) { return rows.content(); }

}  // namespace data
}  // namespace trireme
