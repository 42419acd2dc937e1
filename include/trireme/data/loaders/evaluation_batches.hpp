#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"
#include "trireme/data/images/image_dataset.hpp"
#include "trireme/data/images/normalized_images.hpp"
#include "trireme/data/sources/batch_options.hpp"
#include "trireme/data/sources/dataset.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// The items of a dataset that one rank evaluates, in order, as divided by share_of().
class EvaluationShare {
 public:
  EvaluationShare(std::int64_t dataset_size, const BatchOptions& options);

  std::int64_t num_batches() const { return (share_.count() + batch_size_ - 1) / batch_size_; }
  std::vector<std::int64_t> items(std::int64_t batch) const;

 private:
  std::int64_t batch_size_;  // of this rank
  Range share_;
};

// The range that evaluation_batches() returns. Each batch is read when the loop reaches it.
template <typename Dataset, typename Collate>
class EvaluationBatches {
 public:
  EvaluationBatches(Dataset dataset, const BatchOptions& options, Collate collate)
      : dataset_(std::move(dataset)),
        share_(static_cast<std::int64_t>(dataset_.size()), options),
        collate_(std::move(collate)) {}

  std::int64_t size() const { return share_.num_batches(); }

  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = decltype(read_batch(std::declval<const Dataset&>(), {}, std::int64_t{}, std::declval<const Collate&>()));

    Iterator() = default;
    Iterator(const EvaluationBatches* batches, std::int64_t at) : batches_(batches), at_(at) {}

    value_type operator*() const { return batches_->read(at_); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    void operator++(int) { ++at_; }
    bool operator==(const Iterator&) const = default;

   private:
    const EvaluationBatches* batches_ = nullptr;
    std::int64_t at_ = 0;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  auto read(std::int64_t batch) const {
    const auto items = share_.items(batch);
    return read_batch(dataset_, items, items.front(), collate_);
  }

  Dataset dataset_;
  EvaluationShare share_;
  Collate collate_;
};

// Returns this rank's batches of a dataset for evaluation. Items are in order, each on exactly one rank. A batch has
// micro_batch_size items (0: this rank's share of batch_size); the last batch has the remaining items. A rank may have no
// batches. first_sample is the index of the first item.
//
//   for (const data::Rows& rows : data::evaluation_batches(test, {.index = world.rank(), .count = world.size()})) {
//     right += accuracy(net.forward(rows), rows.labels);
//   }
template <typename Dataset, typename Collate = DefaultCollate>
requires CollatedBy<Dataset, Collate> EvaluationBatches<Dataset, Collate> evaluation_batches(Dataset dataset,
                                                                                             const BatchOptions& options,
                                                                                             Collate collate = {}) {
  return {std::move(dataset), options, std::move(collate)};
}

// Images with values in [0, 1]. If training normalizes, pass NormalizedImages instead.
inline auto evaluation_batches(ImageDataset images, const BatchOptions& options) {
  return evaluation_batches(NormalizedImages(std::move(images)), options);
}

// evaluation_batches() for a dataset that the caller owns and that must outlive the batches; copies nothing.
template <typename Dataset>
auto borrowed_evaluation_batches(const Dataset& dataset, const BatchOptions& options) {
  if constexpr (std::same_as<Dataset, ImageDataset>) {
    return evaluation_batches(dataset, options);
  } else {
    return evaluation_batches(BorrowedDataset<Dataset>(dataset), options);
  }
}

}  // namespace data
}  // namespace trireme
