#include "trireme/data/documents/length_batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "data/documents/document_groups.hpp"
#include "data/documents/document_source.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/text/text_batch.hpp"

namespace trireme::data {
namespace {

constexpr std::int64_t row_numbers_of_batch = 1 << 16;  // of rows

LengthBatchesOptions checked_bounds(const LengthBatchesOptions& options) {
  require(options.max_tokens >= 0 && options.max_rows >= 0 && options.max_tokens + options.max_rows > 0,
          "a batch of documents has a max_tokens or a max_rows above 0, got {} and {}", options.max_tokens, options.max_rows);
  require(options.max_rows <= row_numbers_of_batch, "a batch of documents has at most {} rows, got a max_rows of {}",
          row_numbers_of_batch, options.max_rows);
  require(options.pad_to_multiple_of > 0, "rows cannot be padded to a multiple of {}", options.pad_to_multiple_of);
  require(options.max_tokens == 0 || options.max_tokens >= options.length,
          "batches of at most {} tokens cannot hold a row of {}: use a max_tokens of at least the length", options.max_tokens,
          options.length);
  return options;
}

// The length of the rows of a batch whose longest document has `longest` tokens.
std::int64_t padded_length(std::int64_t longest, const LengthBatchesOptions& options) {
  const std::int64_t multiple = options.pad_to_multiple_of;
  return std::min((longest - 1) / multiple * multiple + multiple, options.length);
}

std::int64_t rows_that_fit(std::int64_t time, const LengthBatchesOptions& options) {
  std::int64_t rows = options.max_rows > 0 ? options.max_rows : row_numbers_of_batch;
  if (options.max_tokens > 0) rows = std::min(rows, options.max_tokens / time);
  return rows;
}

// From the longest documents on.
std::vector<DocumentGroups::Group> cut_by_length(std::vector<DocumentPiece> pieces, const LengthBatchesOptions& options) {
  std::ranges::stable_sort(pieces, std::ranges::greater(), &DocumentPiece::count);
  std::vector<DocumentGroups::Group> batches;
  std::int64_t rows = 0;
  for (const DocumentPiece& piece : pieces) {
    if (batches.empty() || std::ssize(batches.back()) == rows) {
      batches.emplace_back();
      rows = rows_that_fit(padded_length(piece.count, options), options);
    }
    batches.back().push_back(piece);
  }
  return batches;
}

}  // namespace

struct LengthBatches::Batches {
  Batches(std::shared_ptr<const DocumentSource> documents, const LengthBatchesOptions& its_options)
      : options(checked_bounds(its_options)),
        groups(
            std::move(documents),
            {.length = options.length,
             .long_documents = options.long_documents,
             .documents_at_once = options.documents_at_once},
            [options = options](std::vector<DocumentPiece> pieces) { return cut_by_length(std::move(pieces), options); },
            [options = options](const DocumentGroups::Group& rows) {
              return std::ssize(rows) * padded_length(rows.front().count, options);
            }) {}

  LengthBatchesOptions options;
  DocumentGroups groups;
};

LengthBatches::LengthBatches(TokenShards documents, const LengthBatchesOptions& options)
    : batches_(std::make_shared<const Batches>(source_of(std::move(documents)), options)) {}
LengthBatches::LengthBatches(Documents documents, const LengthBatchesOptions& options)
    : batches_(std::make_shared<const Batches>(source_of(std::move(documents)), options)) {}

std::int64_t LengthBatches::size() const noexcept { return batches_->groups.size(); }
double LengthBatches::padding() const noexcept { return batches_->groups.padding(); }
std::int64_t LengthBatches::num_cut_tokens() const noexcept { return batches_->groups.num_cut_tokens(); }
std::int64_t LengthBatches::neighbours() const noexcept { return (size() - 1) / batches_->groups.num_stretches() + 1; }
std::vector<DocumentPiece> LengthBatches::pieces_of(std::int64_t batch) const { return batches_->groups.at(batch); }

std::int64_t LengthBatches::tokens_per_sample() const noexcept {
  return std::llround(static_cast<double>(batches_->groups.num_tokens()) / static_cast<double>(size()));
}

std::string LengthBatches::content() const {
  const LengthBatchesOptions& options = batches_->options;
  return fmt::format("batches of {} tokens and {} rows (0: any), padded to multiples of {}, {}", options.max_tokens,
                     options.max_rows, options.pad_to_multiple_of, batches_->groups.content());
}

TokenBatch LengthBatches::collate(std::span<const std::int64_t> batches, std::int64_t first_sample) const {
  const LengthBatchesOptions& options = batches_->options;
  require(first_sample >= 0 && first_sample < std::numeric_limits<std::int64_t>::max() / row_numbers_of_batch,
          "batch {} is too large: the numbers of its rows overflow", first_sample);
  DocumentGroups::Group rows;
  for (const std::int64_t number : batches) {
    const DocumentGroups::Group batch = pieces_of(number);
    rows.insert(rows.end(), batch.begin(), batch.end());
  }
  require(!rows.empty(), "no batches of documents to read");
  const std::int64_t time = padded_length(std::ranges::max(rows, {}, &DocumentPiece::count).count, options);
  const Shape shape{std::ssize(rows), time};
  TokenBatch batch{.tokens = Tensor<std::int32_t>::full(shape, options.pad_token),
                   .targets = Tensor<std::int32_t>::full(shape, no_target),
                   .document_starts = {},
                   .first_sample = first_sample * row_numbers_of_batch,
                   .nominal_targets = options.max_tokens > 0 ? options.max_tokens : options.max_rows * options.length};
  std::vector<PlacedPiece> pieces;
  for (std::int64_t row = 0; row < std::ssize(rows); ++row) {
    pieces.push_back(
        {rows[static_cast<std::size_t>(row)], batch.tokens.data() + row * time, batch.targets.data() + row * time});
  }
  read_pieces(batches_->groups.documents(), pieces);
  return batch;
}

}  // namespace trireme::data
