#include "data/documents/document_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/data/sources/dataset.hpp"

namespace trireme::data {

DocumentGroups::DocumentGroups(std::shared_ptr<const DocumentSource> documents, const DocumentGroupsOptions& options,
                               Grouping grouping, const Tokens& padded_tokens)
    : documents_(std::move(documents)), options_(options), grouping_(std::move(grouping)) {
  require(options.length > 0 && options.length < std::numeric_limits<std::int32_t>::max(),
          "a row of documents has at least one token, got a length of {}", options.length);
  require(options.documents_at_once > 0, "documents are grouped at least one at a time, got {}", options.documents_at_once);
  require(documents_->size() > 0, "rows need at least one document");
  const std::int64_t stretches = (documents_->size() - 1) / options.documents_at_once + 1;
  group_ends_.resize(static_cast<std::size_t>(stretches));
  std::vector<std::int64_t> cut(group_ends_.size()), kept(group_ends_.size()), padded(group_ends_.size());
  for_each_item(stretches, 0, [&](std::int64_t stretch) {
    const auto at = static_cast<std::size_t>(stretch);
    const std::vector<Group> groups = grouped(stretch, &cut[at]);
    group_ends_[at] = std::ssize(groups);
    for (const Group& group : groups) {
      padded[at] += padded_tokens(group);
      for (const DocumentPiece& piece : group) kept[at] += piece.count;
    }
  });
  std::int64_t end = 0;
  for (std::size_t at = 0; at < group_ends_.size(); ++at) {
    end += group_ends_[at];
    group_ends_[at] = end;
    num_cut_tokens_ += cut[at];
    num_tokens_ += kept[at];
    num_padded_tokens_ += padded[at];
  }
}

double DocumentGroups::padding() const {
  return 1 - static_cast<double>(num_tokens_) / static_cast<double>(num_padded_tokens_);
}

std::string DocumentGroups::content() const {
  return fmt::format("rows of {} tokens, {} documents at once, long ones {}: {}", options_.length, options_.documents_at_once,
                     options_.long_documents == LongDocuments::split ? "split" : "truncated", documents_->content());
}

DocumentGroups::Group DocumentGroups::at(std::int64_t number) const {
  require(number >= 0 && number < size(), "row {} of {}", number, size());
  const std::int64_t stretch = std::ranges::upper_bound(group_ends_, number) - group_ends_.begin();
  const std::int64_t before = stretch == 0 ? 0 : group_ends_[static_cast<std::size_t>(stretch - 1)];
  return (*groups_of(stretch))[static_cast<std::size_t>(number - before)];
}

std::shared_ptr<const std::vector<DocumentGroups::Group>> DocumentGroups::groups_of(std::int64_t stretch) const {
  const auto find = [&] {
    const auto found = std::ranges::find(remembered_, stretch, &Remembered::stretch);
    if (found != remembered_.end()) found->last_use = ++uses_;
    return found == remembered_.end() ? nullptr : found->groups;
  };
  {
    const std::scoped_lock lock(mutex_);
    if (auto groups = find()) return groups;
  }
  auto made = std::make_shared<const std::vector<Group>>(grouped(stretch, nullptr));
  const std::scoped_lock lock(mutex_);
  if (auto groups = find()) return groups;  // another thread has made them meanwhile
  *std::ranges::min_element(remembered_, {}, &Remembered::last_use) = {stretch, ++uses_, made};
  return made;
}

std::vector<DocumentGroups::Group> DocumentGroups::grouped(std::int64_t stretch, std::int64_t* cut_tokens) const {
  const std::int64_t first = stretch * options_.documents_at_once;
  const std::int64_t end = first + std::min(options_.documents_at_once, documents_->size() - first);
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(end - first));
  documents_->read_lengths(first, lengths);
  std::vector<DocumentPiece> pieces;
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
  return grouping_(std::move(pieces));
}

}  // namespace trireme::data
