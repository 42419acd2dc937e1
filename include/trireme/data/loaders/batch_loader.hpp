#pragma once

#include <concepts>
#include <cstdint>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// A training loop reads from a loader: Loader, WindowLoader, ImageLoader, or a loader of your own. Loaders have no state:
// load(step) depends only on its arguments, so that a resumed run continues with the right batch.
//
//   struct Batch {
//     Tensor<float> x;
//     std::int64_t first_sample;  // seeds dropout; parallel::Step needs it and size()
//     std::int64_t size() const { return x.dim(0); }  // samples
//   };
//
//   class NoiseLoader {  // 1000 samples of noise per epoch
//    public:
//     explicit NoiseLoader(const data::BatchOptions& options) : seed_(options.seed), share_(options) {}
//
//     std::int64_t num_micro_batches() const { return share_.num_micro_batches(); }  // of a step, on this rank
//     std::int64_t batch_size() const { return share_.batch_size(); }                // samples of step 0, over all ranks
//     std::int64_t samples_of_steps(std::int64_t steps) const { return share_.samples_of_steps(steps); }
//     std::int64_t samples_per_epoch() const { return 1000; }
//     Batch load(std::int64_t step, std::int64_t micro_batch = 0) const {
//       const std::int64_t first = share_.first_sample(step, micro_batch);
//       Tensor<float> x({share_.micro_batch_size(step), 8});
//       for (std::int64_t i = 0; i < x.numel(); ++i) {
//         const auto place = static_cast<std::uint64_t>(first * 8 + i);  // from the sample's number: the same for all ranks
//         x.data()[i] = static_cast<float>(philox_normal(seed_, hash_name("noise"), place));
//       }
//       return {.x = x, .first_sample = first};
//     }
//
//    private:
//     std::uint64_t seed_;
//     data::BatchShare share_;
//   };
//
// A samples_per_epoch() of 0 means endless data. Optional functions: samples_of_steps(steps), if not all steps have
// batch_size() samples; tokens_per_sample(), if samples are sequences of tokens; content(), a text that identifies the data
// (content_of()), which a run compares with its checkpoint when it resumes; report(), a LoaderReport, which a run writes to its
// metrics; has(step), whether this rank's data hold a step, as StreamLoader has it: a run ends before the first step that a
// rank lacks. All micro-batches of a step must have the same number of targets (Loss::nominal_targets), or a member
// nominal_targets that is one number for all of them; their shapes may differ.
template <typename L>
concept BatchLoader = requires(const L& loader, std::int64_t step) {
  loader.load(step);
  loader.load(step, step);
  { loader.num_micro_batches() } -> std::convertible_to<std::int64_t>;
  { loader.batch_size() } -> std::convertible_to<std::int64_t>;
  { loader.samples_per_epoch() } -> std::convertible_to<std::int64_t>;
};

// If L is not a loader, gives a one-line compiler error that names the missing function.
template <typename L>
constexpr void require_batch_loader() {
  constexpr bool loads = requires(const L& loader, std::int64_t step) { loader.load(step), loader.load(step, step); };
  constexpr bool counts = requires(const L& loader) {
    { loader.num_micro_batches() } -> std::convertible_to<std::int64_t>;
  };
  constexpr bool has_size = requires(const L& loader) {
    { loader.batch_size() } -> std::convertible_to<std::int64_t>;
  };
  constexpr bool has_epochs = requires(const L& loader) {
    { loader.samples_per_epoch() } -> std::convertible_to<std::int64_t>;
  };
  static_assert(loads, "a loader needs a function load(step, micro_batch = 0) const that gives a batch");
  static_assert(!loads || counts, "a loader needs a function num_micro_batches() const: their number in a step, on this rank");
  static_assert(!loads || !counts || has_size,
                "a loader needs a function batch_size() const: the samples of a step, of all ranks together");
  static_assert(!loads || !counts || !has_size || has_epochs,
                "a loader needs a function samples_per_epoch() const: the samples that it reads before it begins anew");
}

// The number of samples in the first `steps` steps, over all ranks: batch_size() per step, unless the loader has a function
// samples_of_steps(steps).
template <BatchLoader L>
std::int64_t samples_of_steps(const L& loader, std::int64_t steps) {
  require(steps >= 0, "the samples of {} steps", steps);
  if constexpr (requires { loader.samples_of_steps(steps); }) {
    return loader.samples_of_steps(steps);
  } else {
    return steps * loader.batch_size();
  }
}

// The smallest number of steps that hold at least `samples` samples; for 20 epochs pass 20 * loader.samples_per_epoch().
template <BatchLoader L>
std::int64_t steps_of_samples(const L& loader, std::int64_t samples) {
  require(samples >= 0, "the steps of {} samples", samples);
  std::int64_t few = 0, many = 0;
  for (std::int64_t more = 1; samples_of_steps(loader, many) < samples; more *= 2) many += more;
  while (few < many) {
    const std::int64_t middle = few + (many - few) / 2;
    if (samples_of_steps(loader, middle) < samples) {
      few = middle + 1;
    } else {
      many = middle;
    }
  }
  return many;
}

}  // namespace data
}  // namespace trireme
