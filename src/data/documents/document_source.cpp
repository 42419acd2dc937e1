#include "data/documents/document_source.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "trireme/data/sources/dataset.hpp"
#include "trireme/data/text/text_batch.hpp"

namespace trireme::data {
namespace {

constexpr int requests_at_once = 8;

class InMemory final : public DocumentSource {
 public:
  explicit InMemory(Documents documents) : documents_(std::move(documents)) {}

  std::int64_t size() const override { return documents_.size(); }
  void read_lengths(std::int64_t first, std::span<std::int64_t> into) const override {
    for (std::int64_t& length : into) length = std::ssize(documents_[first++].tokens);
  }
  void read(const DocumentPiece& piece, std::int32_t* tokens, std::int32_t* targets) const override {
    const Documents::Document document = documents_[piece.document];
    std::copy_n(document.tokens.begin() + piece.begin, piece.count, tokens);
    std::copy_n(document.targets.begin() + piece.begin, piece.count, targets);
  }
  std::string content() const override { return content_of(documents_); }

 private:
  Documents documents_;
};

class InShards final : public DocumentSource {
 public:
  explicit InShards(TokenShards documents) : documents_(std::move(documents)) {}

  std::int64_t size() const override { return documents_.size(); }
  void read_lengths(std::int64_t first, std::span<std::int64_t> into) const override { documents_.read_lengths(first, into); }
  void read(const DocumentPiece& piece, std::int32_t* tokens, std::int32_t* targets) const override {
    const auto& [document, begin, count] = piece;
    if (begin + count < documents_.length_of(document)) {  // the next token is the last target
      std::vector<std::int32_t> with_next(static_cast<std::size_t>(count) + 1);
      documents_.read(document, begin, with_next);
      std::copy_n(with_next.data(), count, tokens);
      std::copy_n(with_next.data() + 1, count, targets);
      return;
    }
    documents_.read(document, begin, {tokens, static_cast<std::size_t>(count)});
    std::copy_n(tokens + 1, count - 1, targets);
    targets[count - 1] = no_target;
  }
  std::string content() const override { return documents_.content(); }
  bool reads_by_requests() const override { return documents_.reads_by_requests(); }

 private:
  TokenShards documents_;
};

}  // namespace

void read_pieces(const DocumentSource& documents, std::span<const PlacedPiece> pieces) {
  const auto read = [&](std::int64_t at) {
    const auto& [piece, tokens, targets] = pieces[static_cast<std::size_t>(at)];
    documents.read(piece, tokens, targets);
  };
  if (documents.reads_by_requests()) return for_each_item(std::ssize(pieces), requests_at_once, read);
  for (std::int64_t at = 0; at < std::ssize(pieces); ++at) read(at);
}

std::shared_ptr<const DocumentSource> source_of(Documents documents) {
  return std::make_shared<InMemory>(std::move(documents));
}
std::shared_ptr<const DocumentSource> source_of(TokenShards documents) {
  return std::make_shared<InShards>(std::move(documents));
}

}  // namespace trireme::data
