// Trains the GPT of the references' convergence.json on the real text with a seed of our own, and compares the validation loss
// with the mean of those listed, which seeds change by 0.03. Label slow.
//   gpt_convergence [COMPRESSION [WARMUP]]    from step 20 on, between all ranks

#include <cmath>
#include <cstdio>
#include <numeric>

#include "fixtures.hpp"
#include "trireme/data/loaders/window_loader.hpp"
#include "trireme/data/text/text.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

constexpr double bound = 0.1;  // the rule of convergence.json
constexpr double compressed_bound = 0.15;
constexpr std::int64_t compression_start = 20;

struct Compression {
  std::string name = "none";
  std::int64_t warmup_steps = 0;
};

struct Run {
  models::GptOptions model;
  std::int64_t steps;
  std::int64_t batch;
  std::int64_t block;
  optim::AdamWOptions optimizer;
  optim::LearningRate schedule;
  double clip;
};

Run run_of(const json& entry) {
  const json& config = entry.at("config");
  const json& hyper = entry.at("hyper");
  const json& schedule = hyper.at("schedule");
  const double rate = hyper.at("lr");
  return {.model = {.layers = config.at("n_layer"),
                    .heads = config.at("n_head"),
                    .width = config.at("n_embd"),
                    .block = config.at("n_positions"),
                    .vocabulary = config.at("vocab_size")},
          .steps = hyper.at("steps"),
          .batch = hyper.at("batch"),
          .block = hyper.at("block"),
          .optimizer = {.learning_rate = rate,
                        .beta1 = hyper.at("betas")[0],
                        .beta2 = hyper.at("betas")[1],
                        .epsilon = hyper.at("eps"),
                        .weight_decay = hyper.at("weight_decay"),
                        .decay = optim::Decay::matrices},
          .schedule = optim::warmup_cosine({.base = rate,
                                            .warmup = schedule.at("warmup"),
                                            .total = schedule.at("total"),
                                            .minimum = rate * schedule.at("min_ratio").get<double>()}),
          .clip = hyper.at("clip")};
}

parallel::GradientSum sum_of(const Compression& compression) {
  const auto hook = parallel::parse_compression(compression.name, compression.warmup_steps);
  if (hook == nullptr) return parallel::Plain{};
  return parallel::Hooked{
      {.hook = hook, .start = compression_start, .only_if_faster = false, .between = parallel::CompressionBetween::ranks}};
}

double validation_loss(const Run& run, const data::TrainingSplit& text, const Compression& compression, const Group& world) {
  constexpr std::uint64_t seed = 1;
  models::Gpt<Float32> model(run.model, ModelContext{.seed = seed});
  model.initialize();
  parallel::DataParallel replicas(model, ProcessMesh(world), {.sum = sum_of(compression)});
  optim::AdamW<Float32> optimizer(model, run.optimizer);
  const data::WindowLoader loader(
      text.training,
      {.batch = {.batch_size = run.batch, .seed = seed, .index = world.rank(), .count = world.size()}, .length = run.block});
  for (std::int64_t number = 0; number < run.steps; ++number) {
    const data::TokenBatch batch = loader.load(number);
    parallel::Step step = replicas.begin(number);
    step.backward(batch, [&] { return model.loss(batch.tokens, batch.targets); });
    step.update(optimizer, {.learning_rate = run.schedule(number), .clip_norm = run.clip});
  }
  const auto starts = data::evenly_spaced_windows(text.validation.size(), run.block, 64);
  const data::TokenBatch batch = data::read_windows(text.validation, starts, run.block);
  return model.loss(batch.tokens, batch.targets).mean();
}

int compare(const Group& world, const json& entry, const Compression& compression) {
  const bool compressed = compression.name != "none";
  const Run run = run_of(entry);
  const auto reference = entry.at("validation_loss_by_step").at(std::to_string(run.steps)).get<std::vector<double>>();
  const auto text =
      data::split(data::TokenDataset::from_bytes(data::read_text(*tests::data_folder() / "text/tinyshakespeare.txt")), 0.1);
  const double loss = validation_loss(run, text, compression, world);
  const double wanted = std::accumulate(reference.begin(), reference.end(), 0.0) / static_cast<double>(reference.size());
  if (world.rank() == 0) std::printf("validation loss %.4f, the reference's %.4f\n", loss, wanted);
  return std::abs(loss - wanted) <= (compressed ? compressed_bound : bound) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const json entry = tests::training_outcome_or_skip("gpt_tinyshakespeare");
  tests::data_folder_or_skip();
  Compression compression;
  if (argc > 1) compression.name = argv[1];
  if (argc > 2) compression.warmup_steps = std::stoll(argv[2]);
  return launch(BackendKind::thread, {.ranks = 2}, [&](const Group& world) { return compare(world, entry, compression); });
}
