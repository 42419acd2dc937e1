#include "trireme/data/sources/dataset_sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "data/sources/item_order.hpp"
#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

// The shares of a smaller last batch of `rest` items, if all ranks can share it equally in the same number of micro-batches.
std::optional<BatchOptions> shares_of_rest(std::int64_t rest, std::int64_t num_micro_batches, const BatchOptions& batch) {
  const std::int64_t parts = batch.count * num_micro_batches;
  if (rest % parts != 0 || batch.batch_size % batch.count != 0) return std::nullopt;
  return BatchOptions{.batch_size = rest, .micro_batch_size = rest / parts, .index = batch.index, .count = batch.count};
}

// The largest batch size, at most that of `batch`, for which the last batch can be shared; 0 if there is none.
std::int64_t batch_size_that_fits(std::int64_t dataset_size, const BatchOptions& batch) {
  const std::int64_t unit = batch.count * std::max<std::int64_t>(1, batch.micro_batch_size);
  for (std::int64_t size = batch.batch_size / unit * unit; size > 0; size -= unit) {
    const std::int64_t num_micro_batches = batch.micro_batch_size == 0 ? 1 : size / unit;
    if (dataset_size % size % (batch.count * num_micro_batches) == 0) return size;
  }
  return 0;
}

BatchShare share_of_rest(std::int64_t dataset_size, const LoaderOptions& options, const BatchShare& whole) {
  const BatchOptions& batch = options.batch;
  const std::int64_t rest = dataset_size % batch.batch_size;
  if (options.last != LastBatch::partial || rest == 0) return whole;
  if (const auto shares = shares_of_rest(rest, whole.num_micro_batches(), batch)) return BatchShare(*shares);
  const std::int64_t fits = batch_size_that_fits(dataset_size, batch);
  const std::string smaller = fits == 0 ? "" : fmt::format("a batch size of {}, ", fits);
  throw Error(
      {.code = ErrorCode::invalid_argument,
       .message = fmt::format("the last batch of {} items has {} of them, which {} ranks with {} micro-batches each "
                              "cannot share equally",
                              dataset_size, rest, batch.count, whole.num_micro_batches()),
       .hint = fmt::format("use {}LastBatch::filled, which goes on with the next epoch, or LastBatch::dropped", smaller)});
}

std::int64_t checked_size(std::span<const DatasetPart> parts) {
  std::int64_t size = 0;
  for (const DatasetPart& part : parts) {
    require(part.size >= 0 && !__builtin_add_overflow(size, part.size, &size),
            "a dataset of {} items beside others cannot be counted", part.size);
  }
  require(size > 0, "a dataset without items cannot be loaded");
  return size;
}

}  // namespace

LoaderOptions options_for_micro_batches(LoaderOptions options) {
  BatchOptions& batch = options.batch;
  require(
      batch.micro_batch_size == 0 || batch.micro_batch_size == 1,
      "the items of this dataset are whole micro-batches, so a micro-batch cannot have {} of them: leave the micro-batch size "
      "out",
      batch.micro_batch_size);
  require(batch.batch_size_from_step.empty(),
          "the items of this dataset are whole micro-batches, and a step has the same number of them as all others: leave "
          "batch_size_from_step out");
  batch.micro_batch_size = 1;
  return options;
}

DatasetSampler::DatasetSampler(std::int64_t dataset_size, const LoaderOptions& options)
    : DatasetSampler(std::vector{DatasetPart{.size = dataset_size}}, options) {}

DatasetSampler::DatasetSampler(std::span<const DatasetPart> parts, const LoaderOptions& options)
    : size_(checked_size(parts)),
      share_(options.batch),
      rest_(share_of_rest(size_, options, share_)),
      last_(options.last),
      order_(make_item_order(parts, options)) {
  require(options.workers >= 0, "{} workers can read nothing; 0 means all threads of this rank", options.workers);
  require(share_.has_one_size() || last_ == LastBatch::filled,
          "batches of other sizes from a step on have no last batch of an epoch: use LastBatch::filled");
  require(size_ != endless || (last_ == LastBatch::filled && options.mixture.empty() && options.block == 0),
          "a dataset without size() has no end, and its items are loaded in order: leave out LoaderOptions::last, mixture and "
          "block");
  require(options.mixture.empty() || last_ == LastBatch::filled,
          "a mixture has no last batch, since its parts end at different steps: use LastBatch::filled");
  require(
      last_ != LastBatch::dropped || size_ >= batch_size(),
      "{} items hold no whole batch of {}: all of them would be dropped; use LastBatch::filled or a batch size of at most {}",
      size_, batch_size(), size_);
}

std::int64_t DatasetSampler::samples_per_epoch() const {
  if (size_ == endless) return 0;
  return last_ == LastBatch::dropped ? steps_per_epoch() * batch_size() : size_;
}

std::int64_t DatasetSampler::steps_per_epoch() const {
  if (last_ == LastBatch::filled) return share_.steps_of_samples(size_);
  return size_ / batch_size() + (last_ == LastBatch::partial && size_ % batch_size() != 0 ? 1 : 0);
}

std::int64_t DatasetSampler::samples_of_steps(std::int64_t steps) const {
  if (last_ != LastBatch::partial) return share_.samples_of_steps(steps);
  return steps / steps_per_epoch() * size_ + steps % steps_per_epoch() * batch_size();
}

DatasetSampler::Place DatasetSampler::place_of(std::int64_t step, std::int64_t micro_batch) const {
  const std::int64_t numbered = share_.first_sample(step, micro_batch);
  if (last_ == LastBatch::filled) {
    return {.epoch = numbered / size_,
            .position = numbered % size_,
            .first_sample = numbered,
            .rows = share_.micro_batch_size(step)};
  }
  const std::int64_t epoch = step / steps_per_epoch();
  const std::int64_t step_of_epoch = step % steps_per_epoch();
  const bool is_rest = last_ == LastBatch::partial && step_of_epoch == size_ / batch_size();
  const BatchShare& share = is_rest ? rest_ : share_;
  const std::int64_t position = step_of_epoch * batch_size() + share.first_sample(0, micro_batch);
  return {.epoch = epoch,
          .position = position,
          .first_sample = epoch * samples_per_epoch() + position,
          .rows = share.micro_batch_size(0)};
}

SampledItems DatasetSampler::items(std::int64_t step, std::int64_t micro_batch) const {
  const Place place = place_of(step, micro_batch);
  SampledItems items{.indices = {}, .first_sample = place.first_sample};
  items.indices.reserve(static_cast<std::size_t>(place.rows));
  for (std::int64_t row = 0; row < place.rows; ++row) {
    const std::int64_t position = place.position + row;  // in later epochs too, where batches are filled
    items.indices.push_back(order_->index(place.epoch + position / size_, position % size_));
  }
  return items;
}

}  // namespace trireme::data
