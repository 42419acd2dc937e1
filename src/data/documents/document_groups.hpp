#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "data/documents/document_source.hpp"

namespace trireme::data {

struct DocumentGroupsOptions {
  std::int64_t length = 1024;  // the most tokens of a piece
  LongDocuments long_documents = LongDocuments::split;
  std::int64_t documents_at_once = 4096;  // neighbouring documents that are grouped together: a stretch
};

// Pieces of documents in groups, such as those that share a row. A piece is grouped only with others of its stretch, and the
// groups depend only on the lengths of documents. So memory holds one number for each stretch, and a group is found by its
// number.
class DocumentGroups {
 public:
  using Group = std::vector<DocumentPiece>;
  using Grouping = std::function<std::vector<Group>(std::vector<DocumentPiece> of_stretch)>;
  using Tokens = std::function<std::int64_t(const Group& group)>;  // with padding

  // Reads the lengths of all documents, on all threads of this rank. Throws Error for a document that is refused and for an
  // option out of its range.
  DocumentGroups(std::shared_ptr<const DocumentSource> documents, const DocumentGroupsOptions& options, Grouping grouping,
                 const Tokens& padded_tokens);

  std::int64_t size() const { return group_ends_.back(); }
  std::int64_t num_stretches() const { return static_cast<std::int64_t>(group_ends_.size()); }
  std::int64_t num_cut_tokens() const { return num_cut_tokens_; }  // tokens that truncation dropped
  double padding() const;                                          // the share of padding in all groups
  std::int64_t num_tokens() const { return num_tokens_; }          // without padding

  const DocumentSource& documents() const { return *documents_; }
  const DocumentGroupsOptions& options() const { return options_; }
  std::string content() const;
  Group at(std::int64_t number) const;

 private:
  struct Remembered {
    std::int64_t stretch = -1;
    std::uint64_t last_use = 0;
    std::shared_ptr<const std::vector<Group>> groups;
  };

  std::shared_ptr<const std::vector<Group>> groups_of(std::int64_t stretch) const;
  std::vector<Group> grouped(std::int64_t stretch, std::int64_t* cut_tokens) const;

  std::shared_ptr<const DocumentSource> documents_;
  DocumentGroupsOptions options_;
  Grouping grouping_;
  std::vector<std::int64_t> group_ends_;  // of each stretch
  std::int64_t num_cut_tokens_ = 0;
  std::int64_t num_tokens_ = 0;
  std::int64_t num_padded_tokens_ = 0;
  mutable std::mutex mutex_;
  mutable std::uint64_t uses_ = 0;
  mutable std::array<Remembered, 64> remembered_;  // the stretches that were used last
};

}  // namespace trireme::data
