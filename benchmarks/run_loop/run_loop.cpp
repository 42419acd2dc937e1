// The cost of trainer::Run over the same loop by hand: steps of a small GPT with both, in turn. Also times a step of a run with
// an empty body.
//   OMP_NUM_THREADS=1 run_loop [--json FILE]

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/core/log.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/core/stopwatch.hpp"
#include "trireme/data/loaders/window_loader.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/trainer/run.hpp"

using namespace trireme;

namespace {

struct Options {
  int pairs = 21;
  std::int64_t empty_steps = 1'000'000;
  models::GptOptions model{.layers = 2, .heads = 4, .width = 128, .block = 64};
  std::string json;
};

constexpr std::int64_t batch_size = 4;
constexpr std::int64_t steps_at_once = 5;

data::TokenDataset random_tokens() {
  std::string text(100'000, ' ');
  for (std::size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<char>('a' + static_cast<int>(philox_uniform(1, 2, i) * 26));
  return data::TokenDataset::from_bytes(std::move(text));
}

// Seconds of pieces of steps_at_once steps.
struct Times {
  std::vector<double> by_run;
  std::vector<double> by_hand;
};

// Both loops on one thread: the run's body takes a few steps by hand before each piece of its own.
Times measure(const Group& world, const Options& options) {
  Times times;
  const data::TokenDataset tokens = random_tokens();
  const ProcessMesh mesh(world);
  models::Gpt<Float32> of_hand(options.model, parallel::model_context(mesh));
  of_hand.initialize();
  optim::AdamW<Float32> optimizer_of_hand(of_hand);
  parallel::DataParallel replicas(of_hand, mesh);
  std::int64_t number = 0;
  const data::WindowLoader windows(tokens, {.batch = {.batch_size = batch_size}, .length = options.model.block});
  const auto steps_by_hand = [&] {
    for (std::int64_t step = 0; step < steps_at_once; ++step, ++number) {
      parallel::Step one = replicas.begin(number);
      one.backward(of_hand, std::vector{windows.load(number)});
      one.update(optimizer_of_hand, {.learning_rate = 1e-3, .clip_norm = 1});
      one.finish();
    }
  };

  trainer::Run run(world, {.until = Steps{(options.pairs + 1) * steps_at_once}, .batch_size = batch_size});
  models::Gpt<Float32> net(options.model, run.context());
  optim::AdamW<Float32> optimizer(net);
  run.add(net, optimizer);
  Stopwatch stopwatch;
  for (auto& step : run.steps(windows)) {
    if (step.number() % steps_at_once == 0) {
      if (step.number() > 0) times.by_run.push_back(stopwatch.seconds());
      times.by_hand.push_back(seconds_of(steps_by_hand));
      stopwatch.restart();
    }
    step.backward(net, step.batches());
    step.update(optimizer);
  }
  times.by_run.push_back(stopwatch.seconds());
  times.by_run.erase(times.by_run.begin());  // the first of each warms up
  times.by_hand.erase(times.by_hand.begin());
  return times;
}

double seconds_of_empty_steps(const Group& world, std::int64_t steps) {
  trainer::Run run(world, {.until = Steps{steps}, .batch_size = batch_size});
  const data::WindowLoader windows(random_tokens(), {.batch = {.batch_size = batch_size}});
  return seconds_of([&] {
    for (const auto& step : run.steps(windows)) static_cast<void>(step);
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("What the loop of trainer::Run costs beside the same loop by hand.");
  command.options_of(options.model);
  command.option("--pairs", options.pairs, "pieces of 5 steps of each side, in turn", Bounds{.least = 6});
  command.option("--empty-steps", options.empty_steps, "steps of a run whose body is empty");
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  set_log_level(Severity::warning);
  return launch(BackendKind::mpi, {}, [&](const Group& world) {
    const double empty = seconds_of_empty_steps(world, options.empty_steps) * 1e6 / static_cast<double>(options.empty_steps);
    const Times times = measure(world, options);
    std::vector<double> ratios;
    for (std::size_t pair = 0; pair < times.by_run.size(); ++pair) ratios.push_back(times.by_run[pair] / times.by_hand[pair]);
    std::ranges::sort(ratios);
    // The interval of the median by order statistics: from the 4th to the 12th of 15 pairs.
    const auto pairs = static_cast<double>(ratios.size());
    const auto rank = static_cast<std::size_t>((pairs - 1.96 * std::sqrt(pairs)) / 2) + 1;
    if (world.rank() != 0) return 0;
    fmt::print("a step with an empty body   {:.2f} us\n", empty);
    fmt::print("a step of a GPT             {:.2f} ms by a run, {:.3f} (95 %: {:.3f} to {:.3f}) of that by hand, {} pairs\n",
               1e3 * median(times.by_run) / steps_at_once, median(ratios), ratios[rank - 1], ratios[ratios.size() - rank],
               ratios.size());
    write_json(options.json, {{"empty_step_microseconds", empty}, {"ratio", median(ratios)}, {"ratios", ratios}});
    return 0;
  });
}
