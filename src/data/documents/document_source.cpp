#include "data/documents/document_source.hpp"

#include <algorithm>
#include <utility>

#include "trireme/data/text/text_batch.hpp"

namespace trireme::data {
namespace {

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
    documents_.read(document, begin, {tokens, static_cast<std::size_t>(count)});
    std::copy_n(tokens + 1, count - 1, targets);
    std::int32_t& last = targets[count - 1];
    last = no_target;
    if (begin + count < documents_.length_of(document)) documents_.read(document, begin + count, {&last, 1});
  }
  std::string content() const override { return documents_.content(); }

 private:
  TokenShards documents_;
};

}  // namespace

std::shared_ptr<const DocumentSource> source_of(Documents documents) {
  return std::make_shared<InMemory>(std::move(documents));
}
std::shared_ptr<const DocumentSource> source_of(TokenShards documents) {
  return std::make_shared<InShards>(std::move(documents));
}

}  // namespace trireme::data
