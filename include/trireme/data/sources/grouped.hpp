#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/data/sources/dataset.hpp"
#include "trireme/data/sources/dataset_sampler.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// The items of a dataset, sorted by group; items of the same group keep their order.
struct ItemGroups {
  std::vector<std::int64_t> items;
  std::vector<DatasetPart> parts;  // one per group that has items

  // `groups`: the group of each item, such as its label. Throws Error for negative groups, and if there are not as many groups
  // as items.
  ItemGroups(std::int64_t num_items, std::span<const std::int32_t> groups);
};

// A dataset whose items form groups, such as classes, so that LoaderOptions::mixture says how often each group comes:
//
//   const data::Grouped by_class(table, table.labels());
//   const data::Loader rows(by_class, {.batch = run.batch(), .mixture = {{0, by_class.equal_weights()}}});
//
// Every class then comes equally often, because the items of rare classes are repeated more often.
template <typename D>
class Grouped {
 public:
  Grouped(D dataset, std::span<const std::int32_t> groups)
      : dataset_(std::move(dataset)),
        groups_(std::make_shared<const ItemGroups>(static_cast<std::int64_t>(dataset_.size()), groups)) {}

  std::int64_t size() const { return std::ssize(groups_->items); }
  const std::vector<DatasetPart>& parts() const { return groups_->parts; }
  std::vector<double> equal_weights() const { return std::vector<double>(groups_->parts.size(), 1); }
  const D& dataset() const { return dataset_; }
  std::int64_t num_bad_samples() const requires requires(const D& dataset) { dataset.num_bad_samples(); }
  { return dataset_.num_bad_samples(); }

  decltype(auto) at(std::int64_t index) const requires ItemDataset<D> {
    return dataset_.at(static_cast<decltype(dataset_.size())>(item(index)));
  }
  auto collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const requires CollatingDataset<D> {
    std::vector<std::int64_t> items;
    items.reserve(indices.size());
    for (const std::int64_t index : indices) items.push_back(item(index));
    return dataset_.collate(items, first_sample);
  }

 private:
  std::int64_t item(std::int64_t index) const {
    require(index >= 0 && index < size(), "item {} of {}", index, size());
    return groups_->items[static_cast<std::size_t>(index)];
  }

  D dataset_;
  std::shared_ptr<const ItemGroups> groups_;
};

template <typename D>
std::string content_of(const Grouped<D>& grouped) requires requires(const D& dataset) {
  content_of(dataset);
}
{ return content_of(grouped.dataset()); }

}  // namespace data
}  // namespace trireme
