#include "sweep.hpp"

#define OMPI_SKIP_MPICXX 1
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "backward.hpp"
#include "comm/base/backend.hpp"
#include "measurement/measurement.hpp"
#include "simulated_step.hpp"
#include "trireme/core/stopwatch.hpp"

namespace {

using trireme::parallel::BucketCuts;

double slowest(double seconds) {
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

// The gradients of all ranks, and the measurements on them.
class Bench {
 public:
  Bench(const trireme::Group& world, std::span<const GradientSize> gradients)
      : world_(world),
        gradients_(gradients),
        elements_(std::accumulate(gradients.begin(), gradients.end(), std::size_t{0},
                                  [](std::size_t sum, const GradientSize& gradient) {
                                    return sum + static_cast<std::size_t>(gradient.shape.numel());
                                  })),
        shared_(std::make_shared<trireme::device::Storage>(world.memory(), elements_ * sizeof(float))),
        heap_(elements_) {}

  double bytes() const { return static_cast<double>(elements_) * sizeof(float); }

  // All buckets at once, without a backward pass.
  double reduce(const BucketCuts& cuts) {
    std::ranges::fill(values(), 1.0f);
    MPI_Barrier(MPI_COMM_WORLD);
    const trireme::Stopwatch stopwatch;
    std::vector<trireme::Pending> pending;
    for (const auto& bucket : buckets(cuts, values())) pending.push_back(world_.all_reduce(bucket));
    for (auto& one : pending) one.wait_on_host();
    return slowest(stopwatch.seconds());
  }

  double reduce_by_mpi(const BucketCuts& cuts) {
    std::ranges::fill(heap_, 1.0f);
    MPI_Barrier(MPI_COMM_WORLD);
    const trireme::Stopwatch stopwatch;
    for (const auto& bucket : buckets(cuts, heap_)) {
      MPI_Allreduce(MPI_IN_PLACE, bucket.data(), static_cast<int>(bucket.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    return slowest(stopwatch.seconds());
  }

  void simulate(double backward_seconds) { backward_ = std::make_unique<Backward>(gradients_, values(), backward_seconds); }

  // When each gradient is final, without any communication.
  std::vector<double> ready_times() {
    std::vector<double> ready(gradients_.size());
    MPI_Barrier(MPI_COMM_WORLD);
    const trireme::Stopwatch stopwatch;
    backward_->run([&](std::size_t index) { ready[index] = stopwatch.seconds(); });
    MPI_Allreduce(MPI_IN_PLACE, ready.data(), static_cast<int>(ready.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return ready;
  }

  double step(const BucketCuts& cuts) {
    const auto parts = buckets(cuts, values());
    MPI_Barrier(MPI_COMM_WORLD);
    const trireme::Stopwatch stopwatch;
    std::vector<trireme::Pending> pending;
    int missing = cuts.front();
    backward_->run([&](std::size_t) {
      if (--missing == 0) {
        pending.push_back(world_.all_reduce(parts[pending.size()]));
        if (pending.size() < cuts.size()) missing = cuts[pending.size()];
      }
      trireme::comm::progress();
    });
    for (auto& one : pending) one.wait_on_host();
    return slowest(stopwatch.seconds());
  }

 private:
  std::span<float> values() { return {static_cast<float*>(shared_->data()), elements_}; }

  std::vector<std::span<float>> buckets(const BucketCuts& cuts, std::span<float> values) const {
    std::vector<std::span<float>> result;
    std::size_t gradient = 0;
    for (const int count : cuts) {
      std::size_t elements = 0;
      for (int i = 0; i < count; ++i) elements += static_cast<std::size_t>(gradients_[gradient++].shape.numel());
      result.push_back(values.first(elements));
      values = values.subspan(elements);
    }
    return result;
  }

  trireme::Group world_;
  std::span<const GradientSize> gradients_;
  std::size_t elements_;
  std::shared_ptr<trireme::device::Storage> shared_;
  std::vector<float> heap_;
  std::unique_ptr<Backward> backward_;
};

std::vector<std::int64_t> bytes_of(std::span<const GradientSize> gradients) {
  std::vector<std::int64_t> bytes;
  for (const GradientSize& gradient : gradients) {
    bytes.push_back(gradient.shape.numel() * static_cast<std::int64_t>(sizeof(float)));
  }
  return bytes;
}

std::vector<Row> make_rows(std::span<const GradientSize> gradients, const SweepOptions& options) {
  const auto bytes = bytes_of(gradients);
  const std::int64_t total = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  std::vector<Row> rows;
  std::vector<double> sizes = options.bucket_mib;
  if (std::ranges::find(sizes, default_bucket_mib) == sizes.end()) sizes.insert(sizes.begin(), default_bucket_mib);
  for (const double mib : sizes) {
    const auto cap = mib > 0 ? std::max<std::int64_t>(1, static_cast<std::int64_t>(mib * (1 << 20))) : total;
    BucketCuts cuts = trireme::parallel::cut_by_cap(bytes, cap, cap);
    if (const auto same = std::ranges::find(rows, cuts, &Row::cuts); same != rows.end()) {
      if (mib == default_bucket_mib) same->bucket_mib = mib;
      continue;
    }
    Row row;
    row.name = mib > 0 && cuts.size() > 1 ? fmt::format("{:g} MiB", mib) : "one bucket";
    row.bucket_mib = mib;
    row.cuts = std::move(cuts);
    rows.push_back(std::move(row));
  }
  return rows;
}

// One time per row and round. Each round begins with another row.
template <typename Time>
std::vector<std::vector<double>> rounds_of(const std::vector<Row>& rows, int rounds, Time time) {
  std::vector<std::vector<double>> seconds(rows.size());
  for (std::size_t round = 0; round < static_cast<std::size_t>(rounds); ++round) {
    for (std::size_t turn = 0; turn < rows.size(); ++turn) {
      const std::size_t index = (turn + round) % rows.size();
      seconds[index].push_back(time(rows[index]));
    }
  }
  return seconds;
}

// Steps of all sizes except the solved one, each without compression and with every compression in turn.
std::vector<HookRows> time_hooks(const trireme::Group& world, std::span<const GradientSize> gradients, const Sweep& sweep,
                                 const SweepOptions& options, double backward_seconds) {
  using trireme::parallel::CompressionBetween;
  std::vector<HookRows> hooks{{.hook = "none", .steps = {}}};
  for (const std::string& hook : options.hooks) hooks.push_back({.hook = hook, .steps = {}});
  const Backward backward(gradients, {}, backward_seconds);
  for (const Row& row : sweep.rows) {
    if (row.name == "solved") continue;
    std::vector<SimulatedStep> steps;
    for (const HookRows& hook : hooks) {
      auto data_parallel = buckets_of(row.bucket_mib > 0 ? row.bucket_mib * (1 << 20) : sweep.bytes);
      if (const auto communication_hook = trireme::parallel::parse_compression(hook.hook)) {
        data_parallel.sum = trireme::parallel::Hooked{
            {.hook = communication_hook,
             .only_if_faster = false,
             .between = world.nodes().size() > 1 ? CompressionBetween::nodes : CompressionBetween::ranks}};
      }
      steps.emplace_back(world, gradients, backward, SimulatedStep::Options{.data_parallel = data_parallel});
    }
    const std::vector<double> seconds = time_steps(steps, options.rounds);
    for (std::size_t index = 0; index < hooks.size(); ++index) {
      hooks[index].steps.push_back({.seconds = seconds[index], .megabytes_sent = steps[index].megabytes_sent()});
    }
  }
  return hooks;
}

bool any_rank_shares_cores(const trireme::Group& world) {
  float shares = trireme::comm::backend_of(world)->context().shares_cores() ? 1.0f : 0.0f;
  world.all_reduce(std::span(&shares, 1), trireme::ReduceOp::max).wait_on_host();
  return shares != 0;
}

}  // namespace

Sweep sweep(const trireme::Group& world, std::span<const GradientSize> gradients, const SweepOptions& options) {
  Bench bench(world, gradients);
  Sweep result{.rows = make_rows(gradients, options),
               .bytes = bench.bytes(),
               .backward_seconds = 0,
               .cost = {},
               .shares_cores = any_rank_shares_cores(world)};
  auto& rows = result.rows;

  bench.reduce(rows.back().cuts);  // warms up
  bench.reduce_by_mpi(rows.back().cuts);
  const auto group = rounds_of(rows, options.rounds, [&](const Row& row) { return bench.reduce(row.cuts); });
  const auto mpi = rounds_of(rows, options.rounds, [&](const Row& row) { return bench.reduce_by_mpi(row.cuts); });
  std::vector<trireme::parallel::CostSample> samples;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    rows[index].group_seconds = median(group[index]);
    rows[index].mpi_seconds = median(mpi[index]);
    const auto buckets = static_cast<double>(rows[index].cuts.size());
    samples.push_back({result.bytes / buckets, rows[index].group_seconds / buckets});
  }
  result.cost = trireme::parallel::fit_cost(samples);
  result.cost.stops_compute = world.on_one_node();

  const double simulated = options.backward_seconds >= 0 ? options.backward_seconds : rows.back().group_seconds;
  bench.simulate(simulated);
  std::vector<std::vector<double>> ready(gradients.size());
  for (int round = 0; round < options.rounds; ++round) {
    const auto times = bench.ready_times();
    for (std::size_t index = 0; index < times.size(); ++index) ready[index].push_back(times[index]);
  }
  std::vector<trireme::parallel::ReadyGradient> finals;
  const auto bytes = bytes_of(gradients);
  for (std::size_t index = 0; index < gradients.size(); ++index) finals.push_back({bytes[index], median(ready[index])});
  result.backward_seconds = finals.back().ready_seconds;

  Row solved;
  solved.name = "solved";
  solved.cuts = solve_buckets(finals, result.cost);
  rows.push_back(solved);
  rows.back().group_seconds = median({bench.reduce(solved.cuts), bench.reduce(solved.cuts), bench.reduce(solved.cuts)});
  rows.back().mpi_seconds =
      median({bench.reduce_by_mpi(solved.cuts), bench.reduce_by_mpi(solved.cuts), bench.reduce_by_mpi(solved.cuts)});

  const std::uint64_t sent = world.bytes_sent();
  const auto steps = rounds_of(rows, options.rounds, [&](const Row& row) { return bench.step(row.cuts); });
  const auto sent_a_step = static_cast<double>(world.bytes_sent() - sent) / (static_cast<double>(rows.size()) * options.rounds);
  for (std::size_t index = 0; index < rows.size(); ++index) {
    Row& row = rows[index];
    row.steps = steps[index];
    row.step_seconds = median(row.steps);
    row.exposed_seconds = std::max(0.0, row.step_seconds - result.backward_seconds);  // both are measured
    row.predicted_seconds = exposed_seconds(row.cuts, finals, result.cost);
    row.megabytes_sent = sent_a_step / 1e6;
  }
  if (!options.hooks.empty()) result.hooks = time_hooks(world, gradients, result, options, simulated);
  return result;
}
