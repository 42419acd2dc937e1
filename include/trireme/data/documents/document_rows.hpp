#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/documents/document_piece.hpp"
#include "trireme/data/documents/documents.hpp"
#include "trireme/data/text/token_batch.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct DocumentRowsOptions {
  std::int64_t length = 256;  // tokens of a row
  bool packing = false;       // puts several documents into a row
  LongDocuments long_documents = LongDocuments::truncated;
  std::int32_t pad_token = 0;  // fills up rows; never a target
};

// A dataset of rows of `length` tokens: one document per row, in order, or with packing as many documents as fit. Packing goes
// from the longest document to the shortest and puts each document into the fullest row that still has room (best-fit
// decreasing; Ding et al. 2024, arXiv 2404.10830). So the packing depends only on the lengths. Copies are cheap: they share
// the documents.
//
//   const data::DocumentRows rows(documents, {.length = 1024, .packing = true});
//   const data::DocumentLoader loader(rows, {.batch = run.batch()});             // training
//   data::evaluation_batches(rows, {.batch_size = 16})                           // each document once, in order
class DocumentRows {
 public:
  // Throws Error if there are no documents, and for a document that is refused.
  explicit DocumentRows(Documents documents, const DocumentRowsOptions& options = {});

  std::int64_t size() const { return static_cast<std::int64_t>(row_ends_.size()); }
  std::int64_t length() const { return options_.length; }
  std::int64_t tokens_of(std::int64_t row) const;                  // without padding
  double padding() const;                                          // the share of padding in all rows of `length` tokens
  std::string content() const;                                     // a text that identifies the documents
  std::int64_t num_cut_tokens() const { return num_cut_tokens_; }  // tokens that truncation dropped

  // Makes a batch of these rows, padded to `time` tokens (0: length()). Throws Error for a row with more tokens. With packing
  // the batch has document_starts, in which each padding token is a document of its own.
  TokenBatch collate(std::span<const std::int64_t> rows, std::int64_t first_sample, std::int64_t time = 0) const;

 private:
  using Piece = DocumentPiece;

  std::vector<Piece> cut_to_length();
  void pack(const std::vector<Piece>& pieces);
  std::span<const Piece> pieces_of(std::int64_t row) const;

  std::shared_ptr<const Documents> documents_;
  DocumentRowsOptions options_;
  std::vector<Piece> pieces_;           // the pieces of all rows, in order
  std::vector<std::int64_t> row_ends_;  // ends of rows in pieces_
  std::int64_t num_tokens_ = 0;         // of all pieces
  std::int64_t num_cut_tokens_ = 0;
};

}  // namespace data
}  // namespace trireme
