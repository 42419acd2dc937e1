#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// A dataset that Loader and evaluation_batches can read: any type with size() and at(index), including std::vector.
//
//   struct Waves {
//     std::int64_t size() const { return 1000; }
//     Wave at(std::int64_t index) const { return read_wave(files[index]); }  // may throw
//     std::vector<std::string> files;
//   };
template <typename D>
concept ItemDataset = requires(const D& dataset) {
  { dataset.size() } -> std::integral;
  dataset.at(dataset.size());
};

// A dataset that makes a whole batch in one call of collate(indices, first_sample).
template <typename D>
concept MakesBatches = requires(const D& dataset, std::span<const std::int64_t> indices) {
  dataset.collate(indices, std::int64_t{});
};

// A dataset each of whose items is a whole micro-batch, such as LengthBatches. Loader then makes micro-batches of one item.
template <typename D>
inline constexpr bool has_micro_batches = [] {
  if constexpr (requires { D::items_are_micro_batches; }) return D::items_are_micro_batches;
  return false;
}();

// A dataset that makes whole batches, for example Table and TokenWindows.
template <typename D>
concept CollatingDataset = MakesBatches<D> && requires(const D& dataset) {
  { dataset.size() } -> std::integral;
};

// A dataset without an end, such as a simulator: a type with at(index), or collate(), for any index from 0 on, and without
// size(). Its items are loaded in order: sample i is item i.
//
//   struct Swings {
//     Swing at(std::int64_t index) const { return simulated(philox_uniform(seed, hash_name("swing"), index)); }
//     std::uint64_t seed = 1;
//   };
template <typename D>
concept EndlessDataset = !requires(const D& dataset) {
  dataset.size();
}
&&(MakesBatches<D> || requires(const D& dataset, std::int64_t index) { dataset.at(index); });

// A batch that holds the items unchanged.
template <typename Item>
struct ItemBatch {
  std::vector<Item> items;
  std::int64_t first_sample = 0;  // the sample number of the first item

  std::int64_t size() const { return std::ssize(items); }
};

// The default collate function: uses the dataset's collate() if it has one, otherwise makes an ItemBatch.
struct DefaultCollate {
  template <typename Item>
  ItemBatch<Item> operator()(std::vector<Item> items, std::int64_t first_sample) const {
    return {.items = std::move(items), .first_sample = first_sample};
  }
};

template <typename D, typename Collate>
concept CollatedBy = (CollatingDataset<D> && std::same_as<Collate, DefaultCollate>) || ItemDataset<D>;

// What Loader reads.
template <typename D, typename Collate>
concept LoadableBy = CollatedBy<D, Collate> || EndlessDataset<D>;

// A reference to a dataset, which must outlive it; copies nothing.
template <typename D>
class BorrowedDataset {
 public:
  explicit BorrowedDataset(const D& dataset) : dataset_(&dataset) {}

  auto size() const { return dataset_->size(); }
  decltype(auto) at(decltype(std::declval<const D&>().size()) index) const requires ItemDataset<D> {
    return dataset_->at(index);
  }
  auto collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const requires CollatingDataset<D> {
    return dataset_->collate(indices, first_sample);
  }

 private:
  const D* dataset_;
};

// Calls action(i) for each i in [0, count), on up to `workers` threads; 0: on all threads of this rank. If calls throw,
// rethrows the exception of the smallest i.
void for_each_item(std::int64_t count, int workers, const std::function<void(std::int64_t)>& action);

namespace detail {
template <typename D>
struct IndexOf {
  using type = std::int64_t;
};
template <ItemDataset D>
struct IndexOf<D> {
  using type = decltype(std::declval<const D&>().size());
};
}  // namespace detail

// Reads these items on up to `workers` threads and makes a batch of them.
template <typename D, typename Collate>
requires LoadableBy<D, Collate>
auto read_batch(const D& dataset, std::span<const std::int64_t> indices, std::int64_t first_sample, const Collate& collate,
                int workers = 1) {
  if constexpr (MakesBatches<D> && std::same_as<Collate, DefaultCollate>) {
    return dataset.collate(indices, first_sample);
  } else {
    using Index = typename detail::IndexOf<D>::type;
    using Item = std::remove_cvref_t<decltype(dataset.at(Index{}))>;
    std::vector<std::optional<Item>> read(indices.size());
    for_each_item(std::ssize(indices), workers, [&](std::int64_t row) {
      const auto at = static_cast<std::size_t>(row);
      read[at].emplace(dataset.at(static_cast<Index>(indices[at])));
    });
    std::vector<Item> items;
    items.reserve(read.size());
    for (std::optional<Item>& item : read) items.push_back(*std::move(item));
    return collate(std::move(items), first_sample);
  }
}

}  // namespace data
}  // namespace trireme
