#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/documents/document_piece.hpp"
#include "trireme/data/documents/documents.hpp"
#include "trireme/data/shards/token_shards.hpp"
#include "trireme/data/text/token_batch.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct LengthBatchesOptions {
  // Bounds of a batch, of which at least one is given.
  std::int64_t max_tokens = 0;  // the most tokens, with padding; 0: no bound
  std::int64_t max_rows = 0;    // the most rows; 0: no bound

  std::int64_t length = 1024;  // the most tokens of a row
  LongDocuments long_documents = LongDocuments::split;
  std::int64_t pad_to_multiple_of = 8;    // the rows of a batch have the length of the longest, rounded up to a multiple
  std::int64_t documents_at_once = 4096;  // neighbouring documents that are sorted together
  std::int32_t pad_token = 0;             // fills up rows; never a target
};

// A dataset of batches of documents of about the same length, one document in a row. Neighbouring documents are sorted by their
// lengths, and as many as max_tokens and max_rows allow make a batch: many short documents, or a few long ones. Memory holds
// only one number for every `documents_at_once` documents.
//
//   const data::LengthBatches batches(data::TokenShards(files), {.max_tokens = 16384, .length = 1024});
//   const data::Loader loader(batches, {.batch = run.batch()});  // batch_size of them a step
//
// Each item is a whole micro-batch. The order of the batches is random, what is in each is not: it depends only on the lengths.
// The rows of micro-batches count alike: TokenBatch::nominal_targets says what Step needs for that.
class LengthBatches {
 public:
  static constexpr bool items_are_micro_batches = true;

  // Throws Error if there are no documents, for a document that is refused, for options out of their range, without a bound,
  // for a max_tokens that holds no row of `length` tokens, and for a broken shard. Reads the lengths of all documents.
  LengthBatches(TokenShards documents, const LengthBatchesOptions& options);
  LengthBatches(Documents documents, const LengthBatchesOptions& options);

  std::int64_t size() const noexcept;               // batches
  std::int64_t tokens_per_sample() const noexcept;  // of a batch, on average, without padding
  double padding() const noexcept;                  // the share of padding in all batches
  std::int64_t num_cut_tokens() const noexcept;     // tokens that truncation dropped
  std::int64_t neighbours() const noexcept;         // batches of documents that lie together
  std::string content() const;
  std::vector<DocumentPiece> pieces_of(std::int64_t batch) const;  // one in each row

  // The rows of these batches, padded to the longest. first_sample counts batches; that of the result counts rows, which have
  // numbers of their own: 65,536 for each batch.
  TokenBatch collate(std::span<const std::int64_t> batches, std::int64_t first_sample) const;

 private:
  struct Batches;
  std::shared_ptr<const Batches> batches_;
};

inline std::string content_of(const LengthBatches& batches) { return batches.content(); }

}  // namespace data
}  // namespace trireme
