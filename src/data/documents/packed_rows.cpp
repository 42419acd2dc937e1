#include "trireme/data/documents/packed_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "data/documents/best_fit.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/sources/dataset.hpp"
#include "trireme/data/text/text_batch.hpp"

namespace trireme::data {
namespace {

using Piece = PackedRows::Piece;
using PackedPieces = std::vector<std::vector<Piece>>;

constexpr std::size_t kept_stretches = 64;  // whose rows are remembered
constexpr int requests_at_once = 8;         // for documents that are read over a network

}  // namespace

class PackedRows::Packing {
 public:
  Packing(TokenShards documents, const PackedRowsOptions& options) : documents_(std::move(documents)), options_(options) {
    require(options.length > 0 && options.length < std::numeric_limits<std::int32_t>::max(),
            "a row of documents has at least one token, got a length of {}", options.length);
    require(options.documents_at_once > 0, "documents are packed at least one at a time, got {}", options.documents_at_once);
    const std::int64_t stretches = (documents_.size() - 1) / options.documents_at_once + 1;
    row_ends_.resize(static_cast<std::size_t>(stretches));
    std::vector<std::int64_t> cut(row_ends_.size()), kept(row_ends_.size());
    for_each_item(stretches, 0, [&](std::int64_t stretch) {
      const auto at = static_cast<std::size_t>(stretch);
      const PackedPieces rows = pack(stretch, &cut[at]);
      row_ends_[at] = std::ssize(rows);
      for (const auto& row : rows) {
        for (const Piece& piece : row) kept[at] += piece.count;
      }
    });
    for (std::size_t at = 0; at < row_ends_.size(); ++at) {
      num_rows_ += row_ends_[at];
      row_ends_[at] = num_rows_;
      num_cut_tokens_ += cut[at];
      num_tokens_ += kept[at];
    }
  }

  const TokenShards& documents() const { return documents_; }
  const PackedRowsOptions& options() const { return options_; }
  std::int64_t num_rows() const { return num_rows_; }
  std::int64_t num_cut_tokens() const { return num_cut_tokens_; }
  std::int64_t num_tokens() const { return num_tokens_; }
  std::int64_t num_stretches() const { return std::ssize(row_ends_); }

  std::vector<Piece> pieces_of(std::int64_t row) const {
    require(row >= 0 && row < num_rows_, "row {} of {}", row, num_rows_);
    const std::int64_t stretch = std::ranges::upper_bound(row_ends_, row) - row_ends_.begin();
    const std::int64_t before = stretch == 0 ? 0 : row_ends_[static_cast<std::size_t>(stretch - 1)];
    return (*rows_of(stretch))[static_cast<std::size_t>(row - before)];
  }

 private:
  struct Remembered {
    std::int64_t stretch = -1;
    std::uint64_t last_use = 0;
    std::shared_ptr<const PackedPieces> rows;
  };

  std::shared_ptr<const PackedPieces> rows_of(std::int64_t stretch) const {
    const auto find = [&] {
      const auto found = std::ranges::find(remembered_, stretch, &Remembered::stretch);
      if (found != remembered_.end()) found->last_use = ++uses_;
      return found == remembered_.end() ? nullptr : found->rows;
    };
    {
      const std::scoped_lock lock(mutex_);
      if (auto rows = find()) return rows;
    }
    auto packed = std::make_shared<const PackedPieces>(pack(stretch, nullptr));
    const std::scoped_lock lock(mutex_);
    if (auto rows = find()) return rows;  // another thread has packed it meanwhile
    *std::ranges::min_element(remembered_, {}, &Remembered::last_use) = {stretch, ++uses_, packed};
    return packed;
  }

  PackedPieces pack(std::int64_t stretch, std::int64_t* cut_tokens) const {
    const std::int64_t first = stretch * options_.documents_at_once;
    const std::int64_t end = first + std::min(options_.documents_at_once, documents_.size() - first);
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(end - first));
    documents_.read_lengths(first, lengths);
    std::vector<Piece> pieces;
    for (std::int64_t document = first; document < end; ++document) {
      const std::int64_t tokens = lengths[static_cast<std::size_t>(document - first)];
      require(tokens <= options_.length || options_.long_documents != LongDocuments::refused,
              "document {} has {} tokens, which is more than the {} of a row; make rows longer, or let long documents be "
              "truncated or split",
              document, tokens, options_.length);
      const bool splits = options_.long_documents == LongDocuments::split;
      const std::int64_t used = splits ? tokens : std::min(tokens, options_.length);
      if (cut_tokens != nullptr) *cut_tokens += tokens - used;
      for (std::int64_t begin = 0; begin < used; begin += options_.length) {
        pieces.push_back({document, begin, std::min(used - begin, options_.length)});
      }
    }
    std::vector<std::int64_t> sizes;
    sizes.reserve(pieces.size());
    for (const Piece& piece : pieces) sizes.push_back(piece.count);
    PackedPieces rows;
    for (const std::vector<std::size_t>& bin : best_fit(sizes, options_.length)) {
      std::vector<Piece>& row = rows.emplace_back();
      for (const std::size_t piece : bin) row.push_back(pieces[piece]);
    }
    return rows;
  }

  TokenShards documents_;
  PackedRowsOptions options_;
  std::vector<std::int64_t> row_ends_;  // of each stretch
  std::int64_t num_rows_ = 0;
  std::int64_t num_cut_tokens_ = 0;
  std::int64_t num_tokens_ = 0;  // in rows
  mutable std::mutex mutex_;
  mutable std::uint64_t uses_ = 0;
  mutable std::array<Remembered, kept_stretches> remembered_;
};

PackedRows::PackedRows(TokenShards documents, const PackedRowsOptions& options)
    : packing_(std::make_shared<const Packing>(std::move(documents), options)) {}

std::int64_t PackedRows::size() const noexcept { return packing_->num_rows(); }
std::int64_t PackedRows::length() const noexcept { return packing_->options().length; }
std::int64_t PackedRows::num_cut_tokens() const noexcept { return packing_->num_cut_tokens(); }
const TokenShards& PackedRows::documents() const noexcept { return packing_->documents(); }

double PackedRows::padding() const noexcept {
  return 1 - static_cast<double>(packing_->num_tokens()) / (static_cast<double>(size()) * static_cast<double>(length()));
}

std::int64_t PackedRows::neighbours() const noexcept { return (size() - 1) / packing_->num_stretches() + 1; }

std::vector<PackedRows::Piece> PackedRows::pieces_of(std::int64_t row) const { return packing_->pieces_of(row); }

std::string PackedRows::content() const {
  const PackedRowsOptions& options = packing_->options();
  return fmt::format("rows of {} tokens, {} documents at once, long ones {}: {}", options.length, options.documents_at_once,
                     options.long_documents == LongDocuments::split ? "split" : "truncated", documents().content());
}

TokenBatch PackedRows::collate(std::span<const std::int64_t> rows, std::int64_t first_sample) const {
  const Shape shape{std::ssize(rows), length()};
  TokenBatch batch{.tokens = Tensor<std::int32_t>(shape),
                   .targets = Tensor<std::int32_t>(shape),
                   .document_starts = Tensor<std::int32_t>(shape),
                   .first_sample = first_sample};
  // `place`: of the first token in the batch.
  const auto read = [&](const Piece& piece, std::int64_t place) {
    const auto& [document, begin, count] = piece;
    std::int32_t* const tokens = batch.tokens.data() + place;
    std::int32_t* const targets = batch.targets.data() + place;
    if (begin + count < documents().length_of(document)) {  // the next token is the last target
      std::vector<std::int32_t> with_next(static_cast<std::size_t>(count + 1));
      documents().read(document, begin, with_next);
      std::copy_n(with_next.data(), count, tokens);
      std::copy_n(with_next.data() + 1, count, targets);
      return;
    }
    documents().read(document, begin, {tokens, static_cast<std::size_t>(count)});
    std::copy_n(tokens + 1, count - 1, targets);
    targets[count - 1] = no_target;
  };
  std::vector<std::pair<Piece, std::int64_t>> requests;
  for (std::int64_t at = 0; at < std::ssize(rows); ++at) {
    std::int64_t place = at * length();
    const std::int64_t end = place + length();
    std::int32_t* const starts = batch.document_starts.data();
    for (const Piece& piece : pieces_of(rows[static_cast<std::size_t>(at)])) {
      if (documents().reads_by_requests()) {
        requests.emplace_back(piece, place);
      } else {
        read(piece, place);
      }
      std::fill_n(starts + place, piece.count, static_cast<std::int32_t>(place - at * length()));
      place += piece.count;
    }
    std::fill(batch.tokens.data() + place, batch.tokens.data() + end, packing_->options().pad_token);
    std::fill(batch.targets.data() + place, batch.targets.data() + end, no_target);
    std::iota(starts + place, starts + end, static_cast<std::int32_t>(place - at * length()));
  }
  for_each_item(std::ssize(requests), requests_at_once, [&](std::int64_t request) {
    const auto& [piece, place] = requests[static_cast<std::size_t>(request)];
    read(piece, place);
  });
  return batch;
}

}  // namespace trireme::data
