// The time to train a small GPT to a given loss on a text that it has not seen. Seed, order of the data and target
// are fixed; the output is MLPerf's log lines.
//   mpirun -n 2 gpt_quality --text FILE

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "measurement/command_line.hpp"
#include "time_to_quality/quality.hpp"
#include "trireme/data/loaders/window_loader.hpp"
#include "trireme/data/text/text.hpp"
#include "trireme/optim/learning_rate.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

struct Options {
  std::string text;
  double target = 1.8;
  int threads = 1;
  std::int64_t seed = 1;
  std::int64_t batch = 32;  // sequences of a step, all ranks together
  std::int64_t most_steps = 600;
  std::int64_t evaluate_every = 25;
  double learning_rate = 3e-3;
  std::int64_t warmup = 50;
};

constexpr models::GptOptions model_options{.layers = 4, .heads = 4, .width = 128, .block = 128};
constexpr std::int64_t validation_windows = 64;
constexpr double validation_fraction = 0.1;

data::TrainingSplit read(const std::string& path) {
  return data::split(data::TokenDataset::from_bytes(data::read_text(path)), validation_fraction);
}

// Nats a byte of evenly spaced windows; the ranks divide the windows.
double validation_loss(const models::Gpt<Float32>& model, const data::TokenDataset& text, const Group& world) {
  const auto starts = data::evenly_spaced_windows(text.size(), model_options.block, validation_windows);
  std::array<double, 2> total{};  // loss, tokens
  for (auto window = static_cast<std::size_t>(world.rank()); window < starts.size();
       window += static_cast<std::size_t>(world.size())) {
    const data::TokenBatch batch = data::read_windows(text, std::span(starts).subspan(window, 1), model_options.block);
    const auto loss = model.loss(batch.tokens, batch.targets);
    total[0] += static_cast<double>(loss.sum.value().item());
    total[1] += loss.target_weight.item();
  }
  world.all_reduce(std::span(total), ReduceOp::sum, "validation loss").wait_on_host();
  return total[0] / total[1];
}

int run(const Options& options, const Group& world) {
  const Mllog log(world);
  log_submission(log, {.benchmark = "gpt_text",
                       .seed = options.seed,
                       .batch_size = options.batch,
                       .optimizer = "adamw",
                       .learning_rate = options.learning_rate,
                       .warmup_steps = options.warmup,
                       .weight_decay = 0.1,
                       .target = options.target});
  log.start("init_start", nlohmann::ordered_json::object());
  models::Gpt<Float32> model(model_options, ModelContext{.seed = static_cast<std::uint64_t>(options.seed)});
  model.initialize();
  parallel::DataParallel replicas(model, ProcessMesh(world));
  optim::AdamW<Float32> optimizer(model, {.beta2 = 0.95, .weight_decay = 0.1, .decay = optim::Decay::matrices});
  const optim::LearningRate schedule = optim::warmup_cosine({.base = options.learning_rate,
                                                             .warmup = options.warmup,
                                                             .total = options.most_steps,
                                                             .minimum = options.learning_rate / 10});
  log.end("init_stop", nlohmann::ordered_json::object());
  log.start("run_start", nlohmann::ordered_json::object());

  std::optional<data::TrainingSplit> text;
  world.agree([&] { text = read(options.text); }, "read the text");
  const data::WindowLoader loader(text->training, {.batch = {.batch_size = options.batch,
                                                             .seed = static_cast<std::uint64_t>(options.seed),
                                                             .index = world.rank(),
                                                             .count = world.size()},
                                                   .length = model_options.block});
  log.event("train_samples", text->training.size() / model_options.block);
  log.event("eval_samples", validation_windows);
  return train_to_quality(log, {.most_steps = options.most_steps,
                                .evaluate_every = options.evaluate_every,
                                .batch_size = options.batch,
                                .train =
                                    [&](std::int64_t number) {
                                      const data::TokenBatch batch = loader.load(number);
                                      parallel::Step step = replicas.begin(number);
                                      step.backward(batch, [&] { return model.loss(batch.tokens, batch.targets); });
                                      step.update(optimizer, {.learning_rate = schedule(number), .clip_norm = 1});
                                    },
                                .evaluate = [&] { return validation_loss(model, text->validation, world); },
                                .reached = [&](double loss) { return loss <= options.target; }});
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("Trains a small GPT on text to a stated validation loss and prints MLPerf's log lines.");
  command.option("--text", options.text, "a file, or a folder of files");
  command.require("--text");
  command.option("--target", options.target, "validation loss, nats a byte");
  command.option("--threads", options.threads, "threads of one rank");
  command.option("--learning-rate", options.learning_rate, "the largest of its schedule");
  command.option("--seed", options.seed, "of weights and order");
  command.option("--batch", options.batch, "sequences of a step, all ranks together");
  command.option("--most-steps", options.most_steps, "the run is aborted after them");
  command.option("--evaluate-every", options.evaluate_every, "steps");
  if (const auto code = command.parse(argc, argv)) return *code;
  options.warmup = std::min(options.warmup, options.most_steps);
  return launch(BackendKind::mpi, {.threads_per_rank = options.threads},
                [&](const Group& world) { return run(options, world); });
}
