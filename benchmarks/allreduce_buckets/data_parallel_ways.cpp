#include "data_parallel_ways.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "measurement/measurement.hpp"
#include "simulated_step.hpp"

namespace {

using trireme::parallel::BucketTuning;

class Ways {
 public:
  Ways(const trireme::Group& world, std::span<const GradientSize> gradients, const WaysOptions& options)
      : world_(world), gradients_(gradients), options_(options), backward_(gradients, {}, options.backward_seconds) {}

  SimulatedStep& add(const std::string& name, const SimulatedStep::Options& options) {
    names_.push_back(name);
    return steps_.emplace_back(world_, gradients_, backward_, options);
  }

  void time() { seconds_ = time_steps(steps_, options_.rounds); }

  double seconds(std::size_t way) const { return seconds_[way]; }

  nlohmann::ordered_json print() const {
    double bytes = 0;
    for (const GradientSize& gradient : gradients_) bytes += 4.0 * static_cast<double>(gradient.shape.numel());
    fmt::print("{}: {:.1f} MB of float32 gradients, {} ranks, simulated backward {:.1f} ms\n\n{:>24} {:>8} {:>10} {:>11}\n",
               options_.model, bytes / 1e6, world_.size(), options_.backward_seconds * 1e3, "buckets", "count", "step ms",
               "exposed ms");
    auto rows = nlohmann::ordered_json::array();
    for (std::size_t way = 0; way < names_.size(); ++way) {
      const auto count = steps_[way].data_parallel().num_buckets();
      fmt::print("{:>24} {:>8} {:>10.2f} {:>11.2f}\n", names_[way], count, seconds_[way] * 1e3,
                 (seconds_[way] - options_.backward_seconds) * 1e3);
      rows.push_back({{"name", names_[way]}, {"buckets", count}, {"step_seconds", seconds_[way]}});
    }
    return {{"model", options_.model},
            {"ranks", world_.size()},
            {"bytes", bytes},
            {"backward_seconds", options_.backward_seconds},
            {"steps", rows}};
  }

 private:
  trireme::Group world_;
  std::span<const GradientSize> gradients_;
  const WaysOptions& options_;
  Backward backward_;
  std::vector<std::string> names_;
  std::vector<SimulatedStep> steps_;
  std::vector<double> seconds_;
};

trireme::parallel::ParallelOptions fixed_size(double mib) { return buckets_of(mib > 0 ? mib * (1 << 20) : 1e18); }

std::string size_name(double mib) { return mib > 0 ? fmt::format("{:g} MiB", mib) : "one bucket"; }

}  // namespace

void compare_tuned(const trireme::Group& world, std::span<const GradientSize> gradients, const WaysOptions& options) {
  Ways ways(world, gradients, options);
  const trireme::parallel::ParallelOptions by_default{.sharding = trireme::parallel::Sharding::none};
  auto tuning = by_default;
  tuning.sum = trireme::parallel::Plain{.tuning = {.on = true, .profile = options.profile}};
  SimulatedStep& tuned = ways.add("tuned", {.data_parallel = tuning});
  int steps = 0;
  for (; !tuned.data_parallel().tuning(); ++steps) tuned.run();
  const BucketTuning found = *tuned.data_parallel().tuning();
  ways.add("default", {.data_parallel = by_default});
  for (const double mib : options.bucket_mib) ways.add(size_name(mib), {.data_parallel = fixed_size(mib)});
  ways.time();

  world.agree([&] {
    if (world.rank() != 0) return;
    auto result = ways.print();
    std::size_t best = 2;
    for (std::size_t way = 2; way < 2 + options.bucket_mib.size(); ++way) {
      if (ways.seconds(way) < ways.seconds(best)) best = way;
    }
    fmt::print("\ntuned in {} steps, {:.2f} ms exposed predicted{}{}\n", steps - 1, found.predicted_exposed_seconds * 1e3,
               found.text.empty() ? "" : ": ", found.text);
    fmt::print("tuned / best fixed size ({}): {:.3f}, tuned / default: {:.3f}\n", size_name(options.bucket_mib[best - 2]),
               ways.seconds(0) / ways.seconds(best), ways.seconds(0) / ways.seconds(1));
    result["tuning_steps"] = steps - 1;
    result["tuned_cuts"] = found.cuts;
    result["of_best_fixed_size"] = ways.seconds(0) / ways.seconds(best);
    result["of_default"] = ways.seconds(0) / ways.seconds(1);
    write_json(options.json, result);
  });
}

void compare_ready_order(const trireme::Group& world, std::span<const GradientSize> gradients, const WaysOptions& options) {
  Ways ways(world, gradients, options);
  for (const double mib : options.bucket_mib) {
    const auto add = [&](const char* order, bool of_store) {
      ways.add(fmt::format("{}, {}", size_name(mib), order),
               {.data_parallel = fixed_size(mib), .swap_halves = true, .first_in_store_order = of_store});
    };
    add("store's order", true);
    add("ready order", false);
  }
  ways.time();
  world.agree([&] {
    if (world.rank() != 0) return;
    auto result = ways.print();
    double best = 0;
    for (std::size_t way = 0; way < 2 * options.bucket_mib.size(); way += 2) {
      best = std::max(best, ways.seconds(way) / ways.seconds(way + 1));
    }
    fmt::print("\nreducing in the ready order makes a step up to {:.2f}x shorter\n", best);
    result["store_order_of_ready_order"] = best;
    write_json(options.json, result);
  });
}
