#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "measurement/measurement.hpp"
#include "plot.hpp"
#include "recommendation.hpp"

namespace {

struct Bandwidth {
  double algorithm;  // bytes / time
  double bus;        // the load of each rank's link: x 2 (n - 1) / n
};

Bandwidth bandwidth(const Sweep& sweep, const Row& row, int ranks) {
  const double algorithm = sweep.bytes / row.group_seconds;
  return {algorithm, algorithm * 2 * (ranks - 1) / ranks};
}

std::string setting(const Row& row) {
  if (row.name == "solved") return "--bucket-mb auto";
  return row.bucket_mib > 0 && row.cuts.size() > 1 ? fmt::format("--bucket-mb {:g}", row.bucket_mib) : "one bucket";
}

Recommendation recommended(const Sweep& sweep) {
  std::vector<TimedWay> ways;
  std::size_t usual = 0;
  for (const Row& row : sweep.rows) {
    if (row.bucket_mib == default_bucket_mib && row.name != "solved") usual = ways.size();
    ways.push_back({.setting = setting(row), .seconds = row.steps});
  }
  return recommend(ways, usual);
}

// Warnings of conditions that hide a difference of a few percent.
std::vector<std::string> warnings(const Sweep& sweep, const Recommendation& recommendation) {
  std::vector<std::string> texts;
  if (sweep.shares_cores) {
    texts.emplace_back(
        "there are more ranks than cores: they wait for each other's time slices, so no time here is that of training");
  }
  constexpr double much = 0.03;
  if (recommendation.noise > much) {
    texts.push_back(
        fmt::format("half of the steps of one size differ by {:.0f} % or more from their median: something else runs on "
                    "this machine",
                    recommendation.noise * 100));
  }
  if (!recommendation.enough) texts.emplace_back("too few rounds to tell a difference from chance: give more by --rounds");
  return texts;
}

nlohmann::ordered_json json_of(const Sweep& sweep, const ReportOptions& options, int ranks) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Row& row : sweep.rows) {
    const auto [algorithm, bus] = bandwidth(sweep, row, ranks);
    rows.push_back({{"name", row.name},
                    {"bucket_mib", row.bucket_mib},
                    {"buckets", row.cuts.size()},
                    {"group_seconds", row.group_seconds},
                    {"mpi_seconds", row.mpi_seconds},
                    {"ratio", row.mpi_seconds / row.group_seconds},
                    {"algorithm_bandwidth", algorithm},
                    {"bus_bandwidth", bus},
                    {"step_seconds", row.step_seconds},
                    {"steps", row.steps},
                    {"exposed_seconds", row.exposed_seconds},
                    {"predicted_exposed_seconds", row.predicted_seconds},
                    {"megabytes_sent", row.megabytes_sent}});
  }
  nlohmann::ordered_json result = {{"model", options.model},
                                   {"algorithm", options.algorithm},
                                   {"progress", options.progress},
                                   {"ranks", ranks},
                                   {"bytes", sweep.bytes},
                                   {"backward_seconds", sweep.backward_seconds},
                                   {"latency_seconds", sweep.cost.latency_seconds},
                                   {"seconds_per_byte", sweep.cost.seconds_per_byte},
                                   {"rows", rows}};
  const Recommendation recommendation = recommended(sweep);
  result["recommended"] = recommendation.setting;
  result["gain"] = {recommendation.gain.least, recommendation.gain.most};
  result["warnings"] = warnings(sweep, recommendation);
  for (const HookRows& hook : sweep.hooks) {
    for (std::size_t index = 0; index < hook.steps.size(); ++index) {
      result["compressed"].push_back({{"hook", hook.hook},
                                      {"name", sweep.rows[index].name},
                                      {"step_seconds", hook.steps[index].seconds},
                                      {"megabytes_sent", hook.steps[index].megabytes_sent}});
    }
  }
  return result;
}

// Step times without and with compressions, for each bucket size.
void print_hooks(const Sweep& sweep) {
  fmt::print("\nstep ms as DataParallel reduces the gradients\n{:>12}", "cap");
  for (const HookRows& hook : sweep.hooks) fmt::print(" {:>12}", hook.hook);
  fmt::print("\n");
  for (std::size_t index = 0; index < sweep.hooks.front().steps.size(); ++index) {
    fmt::print("{:>12}", sweep.rows[index].name);
    for (const HookRows& hook : sweep.hooks) fmt::print(" {:>12.2f}", hook.steps[index].seconds * 1e3);
    fmt::print("\n");
  }
  const auto shortest = [](const HookRows& hook) { return std::ranges::min(hook.steps, {}, &HookedStep::seconds).seconds; };
  const double dense = shortest(sweep.hooks.front());
  const HookRows& best = *std::ranges::min_element(sweep.hooks, {}, shortest);
  if (&best == &sweep.hooks.front()) {
    fmt::print("no compression shortens the step here\n");
    return;
  }
  const auto fastest = std::ranges::min_element(best.steps, {}, &HookedStep::seconds);
  const Row& row = sweep.rows[static_cast<std::size_t>(fastest - best.steps.begin())];
  fmt::print("--compress {} with {}: a step {:.2f}x shorter than the best without, {:.2f} MB sent by rank 0 to other nodes\n",
             best.hook, setting(row), dense / fastest->seconds, fastest->megabytes_sent);
}

std::string csv_text(const Sweep& sweep, int ranks) {
  std::string text =
      "name,bucket_mib,buckets,group_seconds,mpi_seconds,algorithm_bandwidth,bus_bandwidth,step_seconds,exposed_seconds,"
      "predicted_exposed_seconds\n";
  for (const Row& row : sweep.rows) {
    const auto [algorithm, bus] = bandwidth(sweep, row, ranks);
    text += fmt::format("{},{:g},{},{:g},{:g},{:g},{:g},{:g},{:g},{:g}\n", row.name, row.bucket_mib, row.cuts.size(),
                        row.group_seconds, row.mpi_seconds, algorithm, bus, row.step_seconds, row.exposed_seconds,
                        row.predicted_seconds);
  }
  return text;
}

std::string plot(const Sweep& sweep, const ReportOptions& options, int ranks) {
  Curve measured{.label = "exposed, measured", .colour = "#0b6e99", .points = {}};
  Curve predicted{.label = "exposed, predicted", .colour = "#c05a00", .points = {}};
  for (const Row& row : sweep.rows) {
    if (row.name == "solved") continue;
    const double mib = row.bucket_mib > 0 ? row.bucket_mib : sweep.bytes / (1 << 20);
    measured.points.emplace_back(mib, row.exposed_seconds * 1e3);
    predicted.points.emplace_back(mib, row.predicted_seconds * 1e3);
  }
  return draw({.title = fmt::format("{}, {} ranks: communication that backward does not hide", options.model, ranks),
               .x = "bucket size, MiB",
               .y = "milliseconds",
               .curves = {measured, predicted}});
}

}  // namespace

void print_table(const Sweep& sweep, const ReportOptions& options, int ranks) {
  fmt::print("{}: {:.1f} MB of float32 gradients, {} ranks, algorithm {}, progress {}\n", options.model, sweep.bytes / 1e6,
             ranks, options.algorithm, options.progress);
  fmt::print("simulated backward {:.1f} ms; a bucket costs {:.3f} ms + {:.3f} ms a MB\n\n", sweep.backward_seconds * 1e3,
             sweep.cost.latency_seconds * 1e3, sweep.cost.seconds_per_byte * 1e9);
  fmt::print("{:>12} {:>8} {:>10} {:>10} {:>7} {:>8} {:>8} {:>10} {:>11} {:>11}\n", "cap", "buckets", "group ms", "MPI ms",
             "MPI/us", "alg GB/s", "bus GB/s", "step ms", "exposed ms", "predicted");
  for (const Row& row : sweep.rows) {
    const auto [algorithm, bus] = bandwidth(sweep, row, ranks);
    fmt::print("{:>12} {:>8} {:>10.2f} {:>10.2f} {:>7.2f} {:>8.2f} {:>8.2f} {:>10.2f} {:>11.2f} {:>11.2f}\n", row.name,
               row.cuts.size(), row.group_seconds * 1e3, row.mpi_seconds * 1e3, row.mpi_seconds / row.group_seconds,
               algorithm / 1e9, bus / 1e9, row.step_seconds * 1e3, row.exposed_seconds * 1e3, row.predicted_seconds * 1e3);
  }
  if (sweep.rows.front().megabytes_sent > 0) {
    fmt::print("\nrank 0 sends {:.1f} MB a step to other nodes\n", sweep.rows.front().megabytes_sent);
  }
  const Recommendation recommendation = recommended(sweep);
  fmt::print("\n");
  for (const std::string& text : warnings(sweep, recommendation)) fmt::print("warning: {}\n", text);
  if (recommendation.differs) {
    fmt::print("recommended: {}: a step {:.1f} to {:.1f} % shorter than with --bucket-mb {:g}, the default\n",
               recommendation.setting, recommendation.gain.least * 100, recommendation.gain.most * 100, default_bucket_mib);
  } else {
    fmt::print("no difference that is more than chance: keep --bucket-mb {:g}, the default\n", default_bucket_mib);
  }
  if (!sweep.hooks.empty()) print_hooks(sweep);
}

void write_files(const Sweep& sweep, const ReportOptions& options, int ranks) {
  write_json(options.json, json_of(sweep, options, ranks));
  write_text(options.csv, csv_text(sweep, ranks));
  write_text(options.svg, plot(sweep, options, ranks));
}
