#include "parallel/reduction/compression.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "parallel/reduction/hooked_buckets.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/core/stopwatch.hpp"

namespace trireme::parallel {
namespace {

constexpr std::int64_t after_warmup = std::int64_t{1} << 40;  // the number of a step after any warm-up
constexpr int dense_trials = 3;

}  // namespace

Compression::Compression(FlatStore& store, const Group& group, const Group& model, std::span<const int> parameters,
                         const CompressionOptions& options, bool sharded)
    : store_(store), group_(group), model_(model), options_(options), hook_(options.hook()) {
  const std::string name = hook().str();
  require(store.dtype() == DType::float32, "compression {} is for float32 gradients, these are {}", name,
          name_of(store.dtype()));
  require(options.start >= 0, "compression starts at step 0 or later, got {}", options.start);
  require(!hook().indispensable() || options.start == 0,
          "compression {} takes part in the optimizer's work, so it starts at step 0, not {}", name, options.start);
  require(hook().max_exchanges() > 0, "compression {} says that it awaits {} exchanges; it needs one at least", name,
          hook().max_exchanges());
  const bool one_node = options.between == CompressionBetween::nodes && group.on_one_node();
  exchanges_ = group.size() > 1 && !one_node && !parameters.empty();
  const bool may_run = exchanges_ || hook().indispensable();
  if (!may_run && !sharded) return;
  groups_ = make_hook_groups(group, options.between, hook().max_exchanges());
  owner_of_ = assign_owners(store, parameters, groups_.owners);
  if (sharded) {
    shard_ = std::make_shared<OwnerShard>(store, groups_,
                                          parallel::owned_ranges(store, parameters, owner_of_, OwnerShard::longest_range));
  }
  if (!may_run) return;
  std::vector<ParameterInfo> own;
  for (const int index : parameters) {
    if (owns(index)) own.push_back(store.parameter(index));
  }
  hook().prepare(own);
}

bool Compression::shares_gradients(const Bucket& bucket) const {
  return shard_ == nullptr || store_.parameter(bucket.parameters.front()).tied_ranks.size() > 1;
}

bool Compression::counts(const Bucket& bucket) const {
  if (shard_ == nullptr) return group_.rank() == 0;
  const bool first_node = groups_.exchanges.front().rank() == 0;
  return first_node && (!shares_gradients(bucket) || owns(bucket.parameters.front()));
}

std::uint64_t Compression::bytes_sent() const {
  std::uint64_t bytes = 0;
  for (const Group& group : groups_.exchanges) bytes += group.bytes_sent();
  return bytes;
}

bool Compression::begin_step(std::span<const Bucket> buckets, std::int64_t number, const DenseTrial& trial) {
  step_ = number;
  if (step_ < options_.start) return false;
  if (!decision_) decision_ = decide(buckets, trial);
  return decision_->on && (exchanges_ || hook().indispensable());
}

std::vector<double> Compression::largest(std::vector<double> values) const {
  model_.all_reduce(std::span(values), ReduceOp::max, "cost of gradients").wait_on_host();
  return values;
}

CompressionDecision Compression::decide(std::span<const Bucket> buckets, const DenseTrial& trial) {
  const std::string name = hook().str();
  if (hook().indispensable())
    return {.on = true, .text = fmt::format("compression {} is on: the optimizer counts on it", name)};
  if (largest({exchanges_ ? 1.0 : 0.0}).front() == 0) {
    return {.on = false,
            .text = fmt::format("compression {} is off: there is no network between the ranks, or no gradient", name)};
  }
  if (!options_.only_if_faster) return {.on = true, .text = fmt::format("compression {} is on, without a trial", name)};

  const auto element = static_cast<std::int64_t>(sizeof(float));
  std::int64_t total = 0;
  for (const Bucket& bucket : buckets) total += bucket.range.count() * element;
  ReductionCost dense;
  std::vector<double> seconds(2, 0.0);
  if (exchanges_) {
    dense = measure_dense(total, trial);
    for (const Bucket& bucket : buckets) seconds[0] += dense.seconds(static_cast<double>(bucket.range.count() * element));
    seconds[1] = measure_compressed(buckets);
  }
  // The slowest stage of a pipeline counts, since the others wait for it.
  const std::vector<double> slowest = largest({seconds[0], seconds[1], dense.latency_seconds, dense.seconds_per_byte});
  CompressionDecision decision;
  decision.dense_seconds = slowest[0];
  decision.compressed_seconds = slowest[1];
  decision.on = decision.compressed_seconds < decision.dense_seconds;
  decision.text = fmt::format(
      "compression {} is {}: the gradients of a step take {:.1f} ms with it, {:.1f} ms without (a bucket {:.3f} ms + {:.3f} ms "
      "a "
      "MB)",
      name, decision.on ? "on" : "off", 1e3 * decision.compressed_seconds, 1e3 * decision.dense_seconds, 1e3 * slowest[2],
      1e9 * slowest[3]);
  return decision;
}

// Fits the cost to reductions of sizes that are quick on any link.
ReductionCost Compression::measure_dense(std::int64_t most_bytes, const DenseTrial& trial) const {
  std::vector<CostSample> samples;
  std::vector<double> slowest;
  for (const std::int64_t bytes : {64 << 10, 256 << 10, 1 << 20}) {
    const std::int64_t tried = std::min<std::int64_t>(bytes, most_bytes);
    double best = trial(tried);
    for (int attempt = 1; attempt < dense_trials; ++attempt) best = std::min(best, trial(tried));
    samples.push_back({.bytes = static_cast<double>(tried), .seconds = 0});
    slowest.push_back(best);
  }
  group_.all_reduce(std::span(slowest), ReduceOp::max, "cost of gradients").wait_on_host();
  for (std::size_t index = 0; index < samples.size(); ++index) samples[index].seconds = slowest[index];
  return fit_cost(samples);
}

// Runs the hook on random gradients, then restores its state. Between steps the gradients' memory is free.
double Compression::measure_compressed(std::span<const Bucket> buckets) {
  std::vector<Tensor<float>> before;
  for (const NamedTensor& kept : hook().state()) before.push_back(kept.values.clone());
  double best = 0;
  for (int attempt = 0; attempt < 2; ++attempt) {  // the first one allocates memory and makes plans
    fill_gradients(buckets);
    group_.barrier("cost of compressed gradients");
    const Stopwatch stopwatch;
    HookedBuckets hooked(*this, buckets, after_warmup);
    for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) hooked.launch();
    hooked.finish([](Pending& pending) { pending.wait_on_host(); });
    best = stopwatch.seconds();
  }
  const auto kept = hook().state();
  for (std::size_t index = 0; index < kept.size(); ++index) {
    std::ranges::copy(before[index].span(), kept[index].values.data());
  }
  group_.all_reduce(std::span(&best, 1), ReduceOp::max, "cost of compressed gradients").wait_on_host();
  return best;
}

void Compression::fill_gradients(std::span<const Bucket> buckets) {
  const auto seed = static_cast<std::uint64_t>(group_.rank());
  for (const Bucket& bucket : buckets) {
    for (const int index : bucket.parameters) {
      const std::span<float> gradient = store_.gradient<float>(index).span();
      const std::uint64_t stream = hash_name(store_.parameter(index).name);
      for (std::size_t element = 0; element < gradient.size(); ++element) {
        gradient[element] = static_cast<float>(philox_uniform(seed, stream, element)) - 0.5F;
      }
    }
  }
}

}  // namespace trireme::parallel
