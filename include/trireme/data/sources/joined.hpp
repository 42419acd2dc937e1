#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/data/sources/dataset.hpp"
#include "trireme/data/sources/dataset_sampler.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Joins datasets of one type into one dataset. Its items are the items of the parts, one after the other.
// LoaderOptions::mixture says how often each part comes.
//
//   const data::Joined rows({data::PackedRows(books), data::PackedRows(web)});
//   const data::Loader loader(rows, {.batch = run.batch(), .mixture = {{0, {0.3, 0.7}}}});  // 30 % of the samples are books
//
// Batches with items of several parts need a function joined_rows(std::vector<Batch>) beside the batch, as TokenBatch has.
template <typename D>
class Joined {
 public:
  static constexpr bool items_are_micro_batches = has_micro_batches<D>;

  // Throws Error if there are no parts. A part may be empty.
  explicit Joined(std::vector<D> parts) : datasets_(std::move(parts)) {
    require(!datasets_.empty(), "no datasets to join");
    for (const D& dataset : datasets_) {
      DatasetPart& whole = parts_.emplace_back(DatasetPart{.size = static_cast<std::int64_t>(dataset.size())});
      for (const DatasetPart& part : parts_of(dataset)) whole.neighbours = std::max(whole.neighbours, part.neighbours);
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + parts_.back().size);
    }
  }

  std::int64_t size() const { return ends_.back(); }
  std::int64_t tokens_per_sample() const requires requires(const D& dataset) { dataset.tokens_per_sample(); }  // on average
  {
    double tokens = 0;
    for (const D& dataset : datasets_) {
      tokens += static_cast<double>(dataset.tokens_per_sample()) * static_cast<double>(dataset.size());
    }
    return size() == 0 ? datasets_.front().tokens_per_sample() : std::llround(tokens / static_cast<double>(size()));
  }
  const std::vector<DatasetPart>& parts() const { return parts_; }
  const D& part(std::size_t number) const { return datasets_.at(number); }
  std::int64_t num_bad_samples() const requires requires(const D& dataset) { dataset.num_bad_samples(); }
  {
    std::int64_t count = 0;
    for (const D& dataset : datasets_) count += dataset.num_bad_samples();
    return count;
  }

  // The part in which an item lies, and the item's place in this part.
  std::pair<std::size_t, std::int64_t> place_of(std::int64_t index) const {
    require(index >= 0 && index < size(), "item {} of {}", index, size());
    const auto part = static_cast<std::size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
    return {part, index - (part == 0 ? 0 : ends_[part - 1])};
  }

  decltype(auto) at(std::int64_t index) const requires ItemDataset<D> {
    const auto [part, item] = place_of(index);
    return datasets_[part].at(static_cast<decltype(datasets_[part].size())>(item));
  }

  auto collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const requires CollatingDataset<D> {
    using Batch = std::remove_cvref_t<decltype(datasets_[0].collate(indices, first_sample))>;
    std::vector<Batch> rows;
    for (std::size_t begin = 0; begin < indices.size();) {
      std::vector<std::int64_t> items;
      const std::size_t part = place_of(indices[begin]).first, first = begin;
      for (; begin < indices.size() && place_of(indices[begin]).first == part; ++begin)
        items.push_back(place_of(indices[begin]).second);
      rows.push_back(datasets_[part].collate(items, first_sample + static_cast<std::int64_t>(first)));
    }
    return rows.size() == 1 ? std::move(rows.front()) : joined_rows(std::move(rows));
  }

 private:
  std::vector<D> datasets_;
  std::vector<DatasetPart> parts_;
  std::vector<std::int64_t> ends_;
};

template <typename D>
Joined(std::initializer_list<D>) -> Joined<D>;

template <typename D>
std::string content_of(const Joined<D>& joined) requires requires(const D& dataset) {
  content_of(dataset);
}
{
  std::string content;
  for (std::size_t part = 0; part < joined.parts().size(); ++part)
    content += (part == 0 ? "" : "; ") + content_of(joined.part(part));
  return content;
}

}  // namespace data
}  // namespace trireme
