#include "trireme/data/sources/batch_share.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

constexpr std::int64_t most_rows = std::numeric_limits<std::int32_t>::max();

void check_batch(std::int64_t batch_size, const BatchOptions& options) {
  const int count = options.count;
  require(batch_size > 0 && (options.uneven || batch_size % count == 0),
          "a batch of {} samples cannot be shared equally by {} ranks; use a multiple of {}, or BatchOptions::uneven",
          batch_size, count, count);
  require(batch_size >= count, "a batch of {} samples has none for some of {} ranks; use at least {}", batch_size, count,
          count);
  require(batch_size % count == 0 || options.micro_batch_size == 0,
          "a batch of {} samples cannot be shared equally by {} ranks, in micro-batches of {}; use a multiple of {}, or no "
          "micro-batches",
          batch_size, count, options.micro_batch_size, count * std::max<std::int64_t>(1, options.micro_batch_size));
}

}  // namespace

BatchShare::BatchShare(const BatchOptions& options) {
  const auto& [batch_size, batch_size_from_step, micro_batch_size, seed, index, count, uneven] = options;
  require(count > 0 && index >= 0 && index < count, "share {} of {} does not exist", index, count);
  require(micro_batch_size >= 0, "the micro-batch size {} is below 0", micro_batch_size);
  check_batch(batch_size, options);
  const Range share = share_of(batch_size, index, count);
  phases_.push_back({.batch_size = batch_size,
                     .micro_batch_size = micro_batch_size == 0 ? share.count() : micro_batch_size,
                     .first_row = share.begin});
  const std::int64_t of_step = phases_.front().micro_batch_size;
  require(share.count() % of_step == 0, "micro-batches of {} samples do not divide the {} samples of a rank evenly", of_step,
          share.count());
  num_micro_batches_ = share.count() / of_step;
  require(of_step <= most_rows && num_micro_batches_ <= most_rows,
          "a batch of {} samples is {} micro-batches of {} on a rank; at most {} of either can be computed", batch_size,
          num_micro_batches_, of_step, most_rows);
  for (const auto& [from_step, size] : batch_size_from_step) {
    require(from_step > phases_.back().from_step, "other batch sizes are for steps that ascend from 1 on, got step {} after {}",
            from_step, phases_.back().from_step);
    check_batch(size, options);
    const Range own = share_of(size, index, count);
    require(
        own.count() % num_micro_batches_ == 0,
        "from step {} on a rank has {} samples, which its {} micro-batches cannot share equally; use a batch size that is a "
        "multiple of {}",
        from_step, own.count(), num_micro_batches_, count * num_micro_batches_);
    require(own.count() / num_micro_batches_ <= most_rows,
            "from step {} on a micro-batch has {} samples, at most {} can be "
            "computed",
            from_step, own.count() / num_micro_batches_, most_rows);
    phases_.push_back({.from_step = from_step,
                       .first_sample = samples_of_steps(from_step),
                       .batch_size = size,
                       .micro_batch_size = own.count() / num_micro_batches_,
                       .first_row = own.begin});
  }
}

const BatchShare::Phase& BatchShare::phase_of(std::int64_t step) const {
  require(step >= 0, "steps are numbered from 0, got {}", step);
  return *std::prev(std::ranges::upper_bound(phases_, step, {}, &Phase::from_step));
}

std::int64_t BatchShare::samples_of_steps(std::int64_t steps) const {
  const Phase& phase = phase_of(steps);
  require(steps - phase.from_step < (std::numeric_limits<std::int64_t>::max() - phase.first_sample) / phase.batch_size,
          "step {} is too large: the numbers of its samples overflow", steps);
  return phase.first_sample + (steps - phase.from_step) * phase.batch_size;
}

std::int64_t BatchShare::steps_of_samples(std::int64_t samples) const {
  require(samples >= 0, "the steps of {} samples", samples);
  const auto after = std::ranges::lower_bound(phases_, samples, {}, &Phase::first_sample);
  const Phase& phase = after == phases_.begin() ? *after : *std::prev(after);
  return phase.from_step + (samples - phase.first_sample + phase.batch_size - 1) / phase.batch_size;
}

std::int64_t BatchShare::first_sample(std::int64_t step, std::int64_t micro_batch) const {
  require(micro_batch >= 0 && micro_batch < num_micro_batches(), "micro-batch {} does not exist, a step has {}", micro_batch,
          num_micro_batches());
  const Phase& phase = phase_of(step);
  return samples_of_steps(step) + phase.first_row + micro_batch * phase.micro_batch_size;
}

}  // namespace trireme::data
