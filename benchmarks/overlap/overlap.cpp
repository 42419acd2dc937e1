// The share of the gradients' time on the wire that a training step hides behind its backward pass: steps of a GPT with all
// communication after backward and with several bucket sizes, in turn, each after a step without communication.
//   mpirun -n 2 --hostfile hosts overlap [--bucket-mb 1,4,25]

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "gpt_step/training_step.hpp"
#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"

using namespace trireme;

namespace {

struct Options {
  models::GptOptions model;
  std::int64_t batch = 8;  // of one rank
  std::vector<double> bucket_mb = {1, 4, 25};
  int rounds = 5;
  int threads = 1;
  std::string json;
};

struct Way {
  std::string name;
  std::unique_ptr<TrainingStep<Float32>> step;
  std::vector<double> seconds;
};

Way make_way(const std::string& name, const Options& options, const Group& group, std::int64_t bucket_bytes) {
  return {.name = name,
          .step = std::make_unique<TrainingStep<Float32>>(
              TrainingStepOptions{.model = options.model,
                                  .batch = options.batch,
                                  .data_parallel = {.sharding = parallel::Sharding::none,
                                                    .buckets = {.bytes = bucket_bytes,
                                                                .first_bytes = std::min(bucket_bytes, std::int64_t{1} << 20)}}},
              group),
          .seconds = {}};
}

void report(const std::vector<Way>& ways, double wire, const Options& options, int ranks) {
  const double alone = median(ways.front().seconds);
  auto rows = nlohmann::ordered_json::array();
  fmt::print("{:24} {:>10} {:>12} {:>10}\n", "a step", "ms", "exposed ms", "hidden");
  for (const Way& way : ways) {
    const double seconds = median(way.seconds);
    const double hidden = 1 - (seconds - alone) / wire;
    if (&way == &ways.front()) {
      fmt::print("{:24} {:10.1f}\n", way.name, seconds * 1e3);
    } else {
      fmt::print("{:24} {:10.1f} {:12.1f} {:8.0f} %\n", way.name, seconds * 1e3, (seconds - alone) * 1e3, 100 * hidden);
    }
    rows.push_back({{"name", way.name}, {"step_seconds", seconds}, {"hidden", hidden}});
  }
  const nlohmann::ordered_json result = {{"ranks", ranks}, {"wire_seconds", wire}, {"steps", rows}};
  write_json(options.json, result);
}

int benchmark(const Options& options, const Group& world) {
  const Group alone = world.split(world.rank(), 0, "alone");
  std::vector<Way> ways;
  ways.push_back(make_way("without communication", options, alone, 1));
  ways.push_back(make_way("all after backward", options, world, std::int64_t{1} << 40));
  for (const double mib : options.bucket_mb) {
    ways.push_back(make_way(fmt::format("buckets of {:g} MiB", mib), options, world,
                            std::max(std::int64_t{1}, static_cast<std::int64_t>(mib * (1 << 20)))));
  }
  const auto numel = static_cast<std::size_t>(ways.front().step->gradient_numel());
  const device::Storage gradients(world.memory(), numel * sizeof(float));
  const std::span all(static_cast<float*>(gradients.data()), numel);
  std::ranges::fill(all, 1.0F);

  std::vector<double> wire;
  for (int round = -1; round < options.rounds; ++round) {  // the first one warms up
    const double reduction = slowest_seconds(world, [&] { world.all_reduce(all).wait_on_host(); });
    if (round >= 0) wire.push_back(reduction);
    for (std::size_t other = 1; other < ways.size(); ++other) {
      for (Way* way : {&ways.front(), &ways[other]}) {
        const double seconds = slowest_seconds(world, [&] { way->step->run(); });
        if (round >= 0) way->seconds.push_back(seconds);
      }
    }
  }
  world.agree([&] {
    if (world.rank() != 0) return;
    fmt::print("{} ranks x {} threads; {:.1f} MB of gradients alone take {:.1f} ms\n", world.size(), options.threads,
               static_cast<double>(all.size_bytes()) * 1e-6, median(wire) * 1e3);
    report(ways, median(wire), options, world.size());
  });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command(
      "The share of the gradients' time on the wire that a training step of a GPT hides; the defaults are the 10.9M model.");
  command.options_of(options.model);
  command.option("--batch", options.batch, "sequences of one rank");
  command.option("--bucket-mb", options.bucket_mb, "bucket sizes in MiB");
  command.option("--rounds", options.rounds, "steps of each kind; the result is their median");
  command.option("--threads", options.threads, "threads of one rank");
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch(BackendKind::mpi, {.threads_per_rank = options.threads},
                [&](const Group& world) { return benchmark(options, world); });
}
