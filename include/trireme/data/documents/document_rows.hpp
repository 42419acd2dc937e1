#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/documents/documents.hpp"
#include "trireme/data/text/token_batch.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// What becomes of a document that is longer than a row.
enum class LongDocuments : std::uint8_t {
  truncated,  // its first tokens stay
  split,      // it becomes several documents; no token and no target is lost
  refused,    // an Error says which one it is
};

struct DocumentRowsOptions {
  std::int64_t length = 256;  // tokens of a row
  bool packing = false;       // rows hold several whole documents
  LongDocuments long_documents = LongDocuments::truncated;
  std::int32_t pad_token = 0;  // what fills a row; it is never a target
};

// Documents as a dataset of rows of `length` tokens: one document in each, in their order, or with packing as many as fit. Each
// document, from the longest on, goes to the row that it leaves the least room in (best-fit decreasing: Ding et al. 2024, arXiv
// 2404.10830). Which documents share a row depends on their lengths alone. A value: copies share the documents.
//
//   const data::DocumentRows rows(documents, {.length = 1024, .packing = true});
//   const data::DocumentLoader loader(rows, {.batch = run.batch()});             // training
//   data::evaluation_batches(rows, {.batch_size = 16})                           // each document once, in order
class DocumentRows {
 public:
  // No documents, or one that is refused, throw Error.
  explicit DocumentRows(Documents documents, const DocumentRowsOptions& options = {});

  std::int64_t size() const { return static_cast<std::int64_t>(row_ends_.size()); }
  std::int64_t length() const { return options_.length; }
  std::int64_t tokens_of(std::int64_t row) const;                  // without padding
  double padding() const;                                          // share of all rows' tokens, as they are `length` long
  std::string content() const;                                     // of the documents, in words that differ where it does
  std::int64_t num_cut_tokens() const { return num_cut_tokens_; }  // of truncated documents

  // Batches of these rows, `time` tokens long, which is not below tokens_of() of any: 0 means length(). With packing they have
  // document_starts, where padding is documents of one token.
  TokenBatch collate(std::span<const std::int64_t> rows, std::int64_t first_sample, std::int64_t time = 0) const;

 private:
  struct Piece {  // tokens of a document
    std::int64_t document;
    std::int64_t begin;
    std::int64_t count;
  };

  std::vector<Piece> cut_to_length();
  void pack(std::vector<Piece> pieces);
  std::span<const Piece> pieces_of(std::int64_t row) const;

  std::shared_ptr<const Documents> documents_;
  DocumentRowsOptions options_;
  std::vector<Piece> pieces_;           // of all rows, one after the other
  std::vector<std::int64_t> row_ends_;  // in pieces_
  std::int64_t num_tokens_ = 0;         // in pieces_
  std::int64_t num_cut_tokens_ = 0;
};

}  // namespace data
}  // namespace trireme
