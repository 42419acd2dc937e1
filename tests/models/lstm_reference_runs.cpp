// Trains the reference LSTM language models of the index and compares loss, gradient norms and final parameters:
//   lstm_reference_runs thread N | mpi       (under mpirun)
// Each run is done with one and with several micro-batches, with replicated and with sharded steps.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "models/reference_run.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

struct Division {
  int micro_batches = 1;
  parallel::Sharding sharding = parallel::Sharding::none;

  std::string text() const {
    return fmt::format("{} micro-batches, {} steps", micro_batches,
                       sharding == parallel::Sharding::optimizer ? "sharded" : "replicated");
  }
};

int train(const tests::Fixture& fixture, const Group& world, const Division& division) {
  tests::RunReport report(world, fmt::format("{}, {} ranks, {}", fixture.id(), world.size(), division.text()));
  tests::know_run_options(fixture, {"vocab", "embed", "hidden", "layers"}, {"clip", "schedule", "targets", "start"});
  const json& config = fixture.index.at("config");
  const json& hyper = fixture.index.at("hyper");
  const int micro_batches = division.micro_batches;
  const int parts = world.size() * micro_batches;
  const tests::TokenBatches batches(fixture, tests::batches_of(fixture).tensors(), parts);
  const ProcessMesh mesh(world);
  models::LstmLm<Float32> model({.vocabulary = config.at("vocab"),
                                 .embedding = config.at("embed"),
                                 .hidden = config.at("hidden"),
                                 .layers = config.at("layers")},
                                parallel::model_context(mesh, {.batch_size = parts * batches.rows()}));
  nn::load_weights<float>(model, tests::init_of(fixture).file.string());

  parallel::DataParallel replicas(
      model, mesh, {.sharding = division.sharding, .buckets = {.bytes = 40000, .first_bytes = 10000, .slice_bytes = 10000}});
  const auto optimizer = tests::make_optimizer<Float32>(hyper, model);
  const optim::LearningRate schedule = tests::make_schedule(hyper);
  double largest = 0;
  for (std::int64_t number = 0; number < batches.num_steps(); ++number) {
    parallel::Step step = replicas.begin(number, micro_batches);
    for (int micro = 0; micro < micro_batches; ++micro) {
      const int part = world.rank() * micro_batches + micro;
      const data::TokenBatch batch{.tokens = batches.tokens(number, part),
                                   .targets = batches.targets(number, part),
                                   .first_sample = part * batches.rows(),
                                   .first_row = part * batches.rows(),
                                   .continues = number > 0};
      step.backward(batch, [&] { return model.loss(model.forward(batch), batch); });
    }
    largest = std::max(largest, tests::compare_step(fixture, number, step.finish(), report));
    step.update(*optimizer, {.learning_rate = schedule(number), .clip_norm = tests::clip_norm_of(hyper)});
  }
  tests::compare_tensors(fixture, "final.", {.atol = fixture.index.at("tolerance").at("final_param_abs"), .rtol = 0},
                         model.store(), tests::values_in(model.store()), report);
  if (world.rank() == 0) {
    std::printf("%s: %d ranks, %s: loss within %.2e\n", fixture.id().c_str(), world.size(), division.text().c_str(), largest);
  }
  return report.failures();
}

int run_all(const Group& world) {
  return tests::run_fixtures(world, "lstm_lm", [&](const tests::Fixture& fixture) {
    int failures = 0;
    for (const int micro_batches : {1, 2}) {
      for (const auto sharding : {parallel::Sharding::none, parallel::Sharding::optimizer}) {
        if (world.size() == 1 && sharding == parallel::Sharding::optimizer) continue;
        failures += train(fixture, world, {.micro_batches = micro_batches, .sharding = sharding});
      }
    }
    return failures;
  });
}

}  // namespace

int main(int argc, char** argv) { return tests::run_on_ranks(argc, argv, {"lstm_lm"}, run_all); }
