#include "data/sources/mixture_order.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/data/sources/permutation.hpp"

namespace trireme::data {
namespace {

constexpr std::uint64_t seeds_of_parts = hash_name("trireme.data.parts");
constexpr std::uint64_t order_of_rounds = hash_name("trireme.data.rounds");
constexpr std::size_t most_parts = MixtureOrder::round_size;

std::uint64_t seed_of(std::uint64_t seed, std::uint64_t stream, std::uint64_t number) {
  const auto words = philox(seed, stream, number);
  return (std::uint64_t{words[0]} << 32) | words[1];
}

// How many samples of a round each part has: in proportion to its weight, where the largest remainders are rounded up.
std::vector<std::int64_t> counts_in_round(const MixtureWeights& phase, std::span<const DatasetPart> parts) {
  require(phase.weights.size() == parts.size(), "the mixture from step {} on has {} weights for {} parts", phase.from_step,
          phase.weights.size(), parts.size());
  double sum = 0;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const double weight = phase.weights[part];
    require(std::isfinite(weight) && weight >= 0, "the mixture from step {} on has the weight {} for part {}", phase.from_step,
            weight, part);
    require(weight == 0 || parts[part].size > 0, "the mixture from step {} on has a weight for part {}, which is empty",
            phase.from_step, part);
    sum += weight;
  }
  require(sum > 0 && std::isfinite(sum), "the weights of the mixture from step {} on add up to {}", phase.from_step, sum);
  std::vector<std::int64_t> counts;
  std::vector<double> remainders;
  for (const double weight : phase.weights) {
    const double wanted = weight / sum * static_cast<double>(MixtureOrder::round_size);
    counts.push_back(static_cast<std::int64_t>(wanted));
    remainders.push_back(wanted - std::floor(wanted));
  }
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t part) { return remainders[part]; });
  std::int64_t left = MixtureOrder::round_size - std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  for (std::size_t at = 0; left > 0; ++at, --left) ++counts[order[at % order.size()]];
  for (std::size_t part = 0; part < parts.size(); ++part) {
    require((counts[part] > 0) == (phase.weights[part] > 0),
            "the mixture from step {} on has the weight {} of {} for part {}: too small for one sample in {}; use 0 or a "
            "larger one",
            phase.from_step, phase.weights[part], sum, part, MixtureOrder::round_size);
  }
  return counts;
}

}  // namespace

std::uint64_t MixtureOrder::seed_of_part(std::uint64_t seed, std::size_t part) { return seed_of(seed, seeds_of_parts, part); }

MixtureOrder::MixtureOrder(std::span<const DatasetPart> parts, std::vector<std::shared_ptr<const ItemOrder>> orders,
                           const LoaderOptions& options)
    : parts_(parts.begin(), parts.end()), orders_(std::move(orders)), seed_(options.batch.seed) {
  require(parts.size() <= most_parts, "a mixture has at most {} parts, got {}", most_parts, parts.size());
  for (const DatasetPart& part : parts) {
    first_items_.push_back(size_);
    size_ += part.size;
  }
  const BatchShare batches(options.batch);
  std::int64_t last_step = -1;
  for (const MixtureWeights& weights : options.mixture) {
    require(phases_.empty() ? weights.from_step == 0 : weights.from_step > last_step,
            "the weights of a mixture are for steps that ascend from 0, got step {} after {} others", weights.from_step,
            phases_.size());
    last_step = weights.from_step;
    const std::int64_t first_sample = batches.samples_of_steps(weights.from_step);
    Phase phase{.first_sample = first_sample, .counts = counts_in_round(weights, parts), .before = {}};
    phase.before.resize(parts.size());
    if (!phases_.empty()) {
      const Phase& last = phases_.back();
      const std::int64_t samples = first_sample - last.first_sample;
      for (std::size_t part = 0; part < parts.size(); ++part) {
        phase.before[part] = last.before[part] + samples / round_size * last.counts[part];
      }
      const Round round = make_round(phases_.size() - 1, samples / round_size);
      for (std::int64_t at = 0; at < samples % round_size; ++at) ++phase.before[round.parts[static_cast<std::size_t>(at)]];
    }
    phases_.push_back(std::move(phase));
  }
}

MixtureOrder::Round MixtureOrder::make_round(std::size_t phase, std::int64_t number) const {
  std::vector<std::uint32_t> slots;  // the part of each slot of a round
  slots.reserve(static_cast<std::size_t>(round_size));
  const std::vector<std::int64_t>& counts = phases_[phase].counts;
  for (std::size_t part = 0; part < counts.size(); ++part) {
    slots.insert(slots.end(), static_cast<std::size_t>(counts[part]), static_cast<std::uint32_t>(part));
  }
  Round round{.phase = phase, .number = number};
  const Permutation order(round_size, seed_of(seed_, order_of_rounds, phase), static_cast<std::uint64_t>(number));
  std::vector<std::uint32_t> seen(counts.size());
  for (std::int64_t at = 0; at < round_size; ++at) {
    const std::uint32_t part = slots[static_cast<std::size_t>(order(at))];
    round.parts.push_back(part);
    round.places.push_back(seen[part]++);
  }
  return round;
}

std::shared_ptr<const MixtureOrder::Round> MixtureOrder::round_of(std::size_t phase, std::int64_t number) const {
  std::shared_ptr<const Round>& place = remembered_[static_cast<std::size_t>(number) % remembered_.size()];
  {
    const std::scoped_lock lock(mutex_);
    if (place != nullptr && place->phase == phase && place->number == number) return place;
  }
  auto made = std::make_shared<const Round>(make_round(phase, number));
  const std::scoped_lock lock(mutex_);
  place = made;
  return made;
}

std::int64_t MixtureOrder::index(std::int64_t epoch, std::int64_t position) const {
  const std::int64_t sample = epoch * size_ + position;
  const auto after = std::ranges::upper_bound(phases_, sample, {}, &Phase::first_sample);
  const auto number = static_cast<std::size_t>(after - phases_.begin()) - 1;
  const Phase& phase = phases_[number];
  const std::int64_t in_phase = sample - phase.first_sample;
  const std::shared_ptr<const Round> round = round_of(number, in_phase / round_size);
  const auto at = static_cast<std::size_t>(in_phase % round_size);
  const std::uint32_t part = round->parts[at];
  const std::int64_t taken = phase.before[part] + in_phase / round_size * phase.counts[part] + round->places[at];
  return first_items_[part] + orders_[part]->index(taken / parts_[part].size, taken % parts_[part].size);
}

}  // namespace trireme::data
