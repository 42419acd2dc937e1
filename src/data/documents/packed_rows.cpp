#include "trireme/data/documents/packed_rows.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "data/documents/best_fit.hpp"
#include "data/documents/document_groups.hpp"
#include "data/documents/document_source.hpp"
#include "trireme/data/text/text_batch.hpp"

namespace trireme::data {
namespace {

std::vector<DocumentGroups::Group> packed_pieces(const std::vector<DocumentPiece>& pieces, std::int64_t length) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(pieces.size());
  for (const DocumentPiece& piece : pieces) sizes.push_back(piece.count);
  std::vector<DocumentGroups::Group> rows;
  for (const std::vector<std::size_t>& bin : best_fit(sizes, length)) {
    DocumentGroups::Group& row = rows.emplace_back();
    for (const std::size_t piece : bin) row.push_back(pieces[piece]);
  }
  return rows;
}

}  // namespace

struct PackedRows::Packing {
  Packing(TokenShards its_documents, const PackedRowsOptions& its_options)
      : documents(std::move(its_documents)),
        options(its_options),
        rows(
            source_of(documents),
            {.length = options.length,
             .long_documents = options.long_documents,
             .documents_at_once = options.documents_at_once},
            [length = options.length](const std::vector<DocumentPiece>& pieces) { return packed_pieces(pieces, length); },
            [length = options.length](const DocumentGroups::Group&) { return length; }) {}

  TokenShards documents;
  PackedRowsOptions options;
  DocumentGroups rows;
};

PackedRows::PackedRows(TokenShards documents, const PackedRowsOptions& options)
    : packing_(std::make_shared<const Packing>(std::move(documents), options)) {}

std::int64_t PackedRows::size() const noexcept { return packing_->rows.size(); }
std::int64_t PackedRows::length() const noexcept { return packing_->options.length; }
std::int64_t PackedRows::num_cut_tokens() const noexcept { return packing_->rows.num_cut_tokens(); }
const TokenShards& PackedRows::documents() const noexcept { return packing_->documents; }
double PackedRows::padding() const noexcept { return packing_->rows.padding(); }
std::int64_t PackedRows::neighbours() const noexcept { return (size() - 1) / packing_->rows.num_stretches() + 1; }
std::vector<PackedRows::Piece> PackedRows::pieces_of(std::int64_t row) const { return packing_->rows.at(row); }
std::string PackedRows::content() const { return packing_->rows.content(); }

TokenBatch PackedRows::collate(std::span<const std::int64_t> rows, std::int64_t first_sample) const {
  const Shape shape{std::ssize(rows), length()};
  TokenBatch batch{.tokens = Tensor<std::int32_t>(shape),
                   .targets = Tensor<std::int32_t>(shape),
                   .document_starts = Tensor<std::int32_t>(shape),
                   .first_sample = first_sample};
  std::vector<PlacedPiece> pieces;
  for (std::int64_t at = 0; at < std::ssize(rows); ++at) {
    std::int32_t* const tokens = batch.tokens.data() + at * length();
    std::int32_t* const targets = batch.targets.data() + at * length();
    std::int32_t* const starts = batch.document_starts.data() + at * length();
    std::int64_t place = 0;
    for (const Piece& piece : pieces_of(rows[static_cast<std::size_t>(at)])) {
      pieces.push_back({piece, tokens + place, targets + place});
      std::fill_n(starts + place, piece.count, static_cast<std::int32_t>(place));
      place += piece.count;
    }
    std::fill(tokens + place, tokens + length(), packing_->options.pad_token);
    std::fill(targets + place, targets + length(), no_target);
    std::iota(starts + place, starts + length(), static_cast<std::int32_t>(place));
  }
  read_pieces(packing_->rows.documents(), pieces);
  return batch;
}

}  // namespace trireme::data
