#include "trireme/data/documents/document_rows.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "data/documents/best_fit.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/text/text_batch.hpp"

namespace trireme::data {

DocumentRows::DocumentRows(Documents documents, const DocumentRowsOptions& options)
    : documents_(std::make_shared<const Documents>(std::move(documents))), options_(options) {
  require(options.length > 0 && options.length <= std::numeric_limits<std::int32_t>::max(),
          "a row of documents has at least one token, got a length of {}", options.length);
  require(documents_->size() > 0, "rows need at least one document");
  std::vector<Piece> pieces = cut_to_length();
  for (const Piece& piece : pieces) num_tokens_ += piece.count;
  if (options.packing) {
    pack(pieces);
  } else {
    pieces_ = std::move(pieces);
    for (std::int64_t row = 0; row < std::ssize(pieces_); ++row) row_ends_.push_back(row + 1);
  }
}

std::vector<DocumentRows::Piece> DocumentRows::cut_to_length() {
  const std::int64_t length = options_.length;
  std::vector<Piece> pieces;
  for (std::int64_t number = 0; number < documents_->size(); ++number) {
    const auto tokens = std::ssize((*documents_)[number].tokens);
    require(tokens <= length || options_.long_documents != LongDocuments::refused,
            "document {} has {} tokens, which is more than the {} of a row; make rows longer, or let long documents be "
            "truncated or split",
            number, tokens, length);
    pieces.push_back({number, 0, std::min(tokens, length)});
    if (options_.long_documents == LongDocuments::truncated) {
      num_cut_tokens_ += tokens - pieces.back().count;
      continue;
    }
    for (std::int64_t begin = length; begin < tokens; begin += length) {
      pieces.push_back({number, begin, std::min(tokens - begin, length)});
    }
  }
  return pieces;
}

void DocumentRows::pack(const std::vector<Piece>& pieces) {
  std::vector<std::int64_t> sizes;
  for (const Piece& piece : pieces) sizes.push_back(piece.count);
  for (const std::vector<std::size_t>& row : best_fit(sizes, options_.length)) {
    for (const std::size_t piece : row) pieces_.push_back(pieces[piece]);
    row_ends_.push_back(std::ssize(pieces_));
  }
}

std::span<const DocumentRows::Piece> DocumentRows::pieces_of(std::int64_t row) const {
  require(row >= 0 && row < size(), "row {} does not exist among {} rows", row, size());
  const auto place = static_cast<std::size_t>(row);
  const std::int64_t begin = place == 0 ? 0 : row_ends_[place - 1];
  return std::span(pieces_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(row_ends_[place] - begin));
}

std::int64_t DocumentRows::tokens_of(std::int64_t row) const {
  std::int64_t tokens = 0;
  for (const Piece& piece : pieces_of(row)) tokens += piece.count;
  return tokens;
}

double DocumentRows::padding() const {
  return 1 - static_cast<double>(num_tokens_) / (static_cast<double>(size()) * static_cast<double>(options_.length));
}

std::string DocumentRows::content() const { return content_of(*documents_); }

TokenBatch DocumentRows::collate(std::span<const std::int64_t> rows, std::int64_t first_sample, std::int64_t time) const {
  if (time == 0) time = options_.length;
  const Shape shape{std::ssize(rows), time};
  TokenBatch batch{.tokens = Tensor<std::int32_t>::full(shape, options_.pad_token),
                   .targets = Tensor<std::int32_t>::full(shape, no_target),
                   .document_starts = options_.packing ? Tensor<std::int32_t>(shape) : Tensor<std::int32_t>(),
                   .first_sample = first_sample};
  for (std::int64_t at = 0; at < std::ssize(rows); ++at) {
    const std::int64_t row = rows[static_cast<std::size_t>(at)];
    require(tokens_of(row) <= time, "row {} has {} tokens and does not fit {}", row, tokens_of(row), time);
    std::int32_t* const starts = options_.packing ? batch.document_starts.data() + at * time : nullptr;
    std::int64_t place = 0;
    for (const Piece& piece : pieces_of(row)) {
      const Documents::Document document = (*documents_)[piece.document];
      std::copy_n(document.tokens.begin() + piece.begin, piece.count, batch.tokens.data() + at * time + place);
      std::copy_n(document.targets.begin() + piece.begin, piece.count, batch.targets.data() + at * time + place);
      if (starts != nullptr) std::fill_n(starts + place, piece.count, static_cast<std::int32_t>(place));
      place += piece.count;
    }
    for (; starts != nullptr && place < time; ++place) starts[place] = static_cast<std::int32_t>(place);
  }
  return batch;
}

}  // namespace trireme::data
