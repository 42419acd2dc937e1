// The share of the time that the ranks of a pipeline wait, measured and by the schedule. All schedules in turn, equal stages.
//   pipeline_benchmark --ranks 2 --micro-batches 8 [--json FILE]

#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/comm/launch/launch.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/staged/staged.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/parallel/pipeline/pipeline_timeline.hpp"

using namespace trireme;

namespace {

struct Options {
  int ranks = 2;
  int micro_batches = 8;
  int layers = 4;  // of a rank
  std::int64_t rows = 128;
  std::int64_t width = 1024;
  int rounds = 10;
  std::vector<std::string> schedules = {"1f1b", "zb"};
  std::string json;
};

struct Layer : nn::Module<Float32> {
  Layer(const nn::Module<Float32>& parent, std::string_view name, std::int64_t width)
      : nn::Module<Float32>(parent, name), linear(*this, "linear", {.in = width, .out = width}) {}

  Variable<float> forward(const Variable<float>& x) const { return relu(linear.forward(x)); }

  nn::Linear<Float32> linear;
};

struct Batch {
  Tensor<float> x;
  Tensor<float> target;
  std::int64_t first_sample = 0;
};

// Every stage computes the gradient of its input, even the first.
struct Net : nn::Staged<Float32, Cpu, Batch> {
  Net(const ModelContext& context, const Options& options)
      : Staged(context), linear(*this, "layer", options.ranks * options.layers, options.width) {
    const auto input = [](const Batch& batch) { return watch(batch.x, [](const Tensor<float>&) {}); };
    const auto output = [](const Variable<float>& x) { return x; };
    layers(layer({}, input).costs(0), linear, layer({}, output).costs(0));
  }

  Loss<float> loss(const Variable<float>& y, const Batch& batch) const { return mse_loss(y, batch.target); }

  nn::ModuleList<Layer> linear;
};

// A model that runs its stages by one schedule.
class Replica {
 public:
  Replica(const ProcessMesh& mesh, const Options& options, const std::string& schedule)
      : model_(parallel::model_context(mesh), options),
        replicas_((model_.initialize(), model_), mesh, {.schedule = schedule}) {}

  void step(const std::vector<Batch>& batches) {
    parallel::Step step = replicas_.begin(next_step_++, static_cast<int>(batches.size()));
    step.backward(model_, batches);
    step.finish();
  }

  std::vector<parallel::TimedAction> timeline() const { return replicas_.timeline(); }

 private:
  Net model_;
  parallel::DataParallel replicas_;
  std::int64_t next_step_ = 0;
};

struct Share {
  double seconds = 0;  // of the step
  double measured = 0;
  double predicted = 0;  // from the virtual time of the schedule with the measured mean time of each kind of action
};

// The times of all ranks; the last rank ends a step.
Share share_of_waiting(const Group& world, const parallel::PipelineSchedule& schedule,
                       const std::vector<parallel::TimedAction>& timeline) {
  const auto ranks = static_cast<std::size_t>(world.size());
  std::vector<double> seconds(4 * ranks, 0);  // by rank: forward, backward, weight gradients, the end
  const auto mine = std::span(seconds).subspan(4 * static_cast<std::size_t>(world.rank()), 4);
  for (const auto& [action, begin, end] : timeline) {
    mine[static_cast<std::size_t>(action.kind)] += end - begin;
    mine[3] = end;
  }
  world.all_reduce(std::span(seconds)).wait_on_host();
  double step = 0;
  double busy = 0;
  std::vector<parallel::StageSeconds> stages;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto of_rank = std::span(seconds).subspan(4 * rank, 4);
    step = std::max(step, of_rank[3]);
    busy += of_rank[0] + of_rank[1] + of_rank[2];
    const double count = schedule.num_micro_batches;
    stages.push_back({of_rank[0] / count, of_rank[1] / count, of_rank[2] / count});
  }
  if (!schedule.splits_backward) {
    for (auto& stage : stages) stage.weight_gradient = 0;
  }
  return {step, 1 - busy / (step * static_cast<double>(ranks)), simulate(schedule, stages).bubble()};
}

using Shares = std::map<std::string, std::vector<Share>>;

Shares measure(const Group& world, const Options& options) {
  const ProcessMesh mesh(world, {.pipeline = options.ranks});
  const Shape shape{options.rows, options.width};
  const Tensor<float> x = Tensor<float>::full(shape, 0.5f);
  const Tensor<float> target = Tensor<float>::zeros(shape);
  std::vector<Batch> batches;
  for (int micro = 0; micro < options.micro_batches; ++micro) {
    batches.push_back({.x = x, .target = target, .first_sample = micro * options.rows});
  }
  std::map<std::string, std::unique_ptr<Replica>> replicas;
  for (const std::string& name : options.schedules) replicas[name] = std::make_unique<Replica>(mesh, options, name);
  Shares shares;
  for (int round = -1; round < options.rounds; ++round) {  // the first one warms up
    for (const std::string& name : options.schedules) {
      const auto schedule = parallel::make_pipeline_schedule(
          {.name = name, .num_ranks = options.ranks, .num_micro_batches = options.micro_batches});
      world.barrier();
      replicas[name]->step(batches);
      const Share share = share_of_waiting(world, schedule, replicas[name]->timeline());
      if (round >= 0) shares[name].push_back(share);
    }
  }
  return shares;
}

void report(const Options& options, const Shares& shares) {
  nlohmann::ordered_json figures{{"ranks", options.ranks}, {"micro_batches", options.micro_batches}};
  fmt::print("{} ranks, {} micro-batches, medians of {} rounds: share of the time that ranks wait\n", options.ranks,
             options.micro_batches, options.rounds);
  fmt::print("{:>8} {:>10} {:>10} {:>24}\n", "schedule", "measured", "predicted", "less than the first in");
  const std::vector<Share>& first = shares.at(options.schedules.front());
  for (const std::string& name : options.schedules) {
    std::vector<double> seconds;
    std::vector<double> measured;
    std::vector<double> predicted;
    int less = 0;
    for (std::size_t round = 0; round < shares.at(name).size(); ++round) {
      const Share& share = shares.at(name)[round];
      seconds.push_back(share.seconds);
      measured.push_back(share.measured);
      predicted.push_back(share.predicted);
      less += share.measured < first[round].measured ? 1 : 0;
    }
    fmt::print("{:>8} {:>8.2f} % {:>8.2f} % {:>17} rounds\n", name, 100 * median(measured), 100 * median(predicted), less);
    figures["schedules"][name] = {{"step_seconds", median(seconds)},
                                  {"measured", median(measured)},
                                  {"predicted", median(predicted)},
                                  {"less_than_first", less}};
  }
  write_json(options.json, figures);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("What share of the time the ranks of a pipeline wait, beside what the schedule says");
  command.option("--ranks", options.ranks, "ranks, one thread each", {.least = 2});
  command.option("--micro-batches", options.micro_batches, "micro-batches of a step");
  command.option("--layers", options.layers, "linear layers on each rank");
  command.option("--rows", options.rows, "rows of a micro-batch");
  command.option("--width", options.width, "width of the layers");
  command.option("--rounds", options.rounds, "measurements of each schedule, in turn", {.least = 1, .most = 1000});
  command.option("--schedules", options.schedules, "schedules with one stage a rank");
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch(BackendKind::thread, {.ranks = options.ranks, .threads_per_rank = 1}, [&](const Group& world) {
    const Shares shares = measure(world, options);
    if (world.rank() == 0) report(options, shares);
    return 0;
  });
}
