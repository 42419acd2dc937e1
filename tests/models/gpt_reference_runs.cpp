// Trains the reference GPT runs of the index and compares loss, gradients, norms and final parameters:
//   gpt_reference_runs thread N | mpi       (under mpirun)
// Each run is done with one and with several micro-batches, with replicated and with sharded steps.

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "fixtures.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

// `failures` counts what is out of bounds on this rank.
class Report {
 public:
  Report(const Group& world, std::string run) : world_(world), run_(std::move(run)) {}

  void expect(bool ok, const std::string& text) {
    if (ok) return;
    ++failures_;
    std::fprintf(stderr, "%s, rank %d: %s\n", run_.c_str(), world_.rank(), text.c_str());
  }
  int failures() const { return failures_; }

 private:
  const Group& world_;
  std::string run_;
  int failures_ = 0;
};

models::GptOptions model_options(const json& config) {
  return {.layers = config.at("n_layer"),
          .heads = config.at("n_head"),
          .width = config.at("n_embd"),
          .block = config.at("n_positions"),
          .vocabulary = config.at("vocab_size")};
}

std::unique_ptr<optim::Optimizer<Float32>> make_optimizer(const json& hyper, FlatStore& store) {
  const auto decay = hyper.at("decay") == "all" ? optim::Decay::all : optim::Decay::matrices;
  if (hyper.at("optimizer") == "AdamW") {
    return std::make_unique<optim::AdamW<Float32>>(store, optim::AdamWOptions{.learning_rate = hyper.at("lr"),
                                                                              .beta1 = hyper.at("betas")[0],
                                                                              .beta2 = hyper.at("betas")[1],
                                                                              .epsilon = hyper.at("eps"),
                                                                              .weight_decay = hyper.at("weight_decay"),
                                                                              .decay = decay});
  }
  require(hyper.at("optimizer") == "SGD", "the reference run wants {}", hyper.at("optimizer").get<std::string>());
  return std::make_unique<optim::Sgd<Float32>>(store, optim::SgdOptions{.learning_rate = hyper.at("lr"),
                                                                        .momentum = hyper.value("momentum", 0.0),
                                                                        .weight_decay = hyper.at("weight_decay"),
                                                                        .decay = decay});
}

optim::Schedule make_schedule(const json& hyper) {
  const double base = hyper.at("lr");
  if (!hyper.contains("schedule")) return optim::constant(base);
  const json& rule = hyper.at("schedule");
  return optim::warmup_cosine({.base = base,
                               .warmup = rule.at("warmup"),
                               .total = rule.at("total"),
                               .minimum = base * rule.at("min_ratio").get<double>()});
}

// [steps, batch, time] of one step, as this rank's samples [first, first + count).
Tensor<std::int32_t> rows(const std::vector<std::int64_t>& all, const Shape& shape, std::int64_t step, std::int64_t first,
                          std::int64_t count) {
  Tensor<std::int32_t> part({count, shape[2]});
  const std::int64_t begin = (step * shape[1] + first) * shape[2];
  for (std::int64_t index = 0; index < part.numel(); ++index) {
    part.data()[index] = static_cast<std::int32_t>(all[static_cast<std::size_t>(begin + index)]);
  }
  return part;
}

// A parameter-shaped tensor in the layout of the reference files.
std::vector<float> in_stored_layout(const ParameterInfo& parameter, std::span<const float> values, double scale) {
  std::vector<float> stored(values.size());
  const bool transposed = models::stored_transposed(parameter.name);
  const auto columns = static_cast<std::size_t>(parameter.shape.back());
  const std::size_t height = values.size() / columns;
  for (std::size_t index = 0; index < values.size(); ++index) {
    const std::size_t to = transposed ? index % columns * height + index / columns : index;
    stored[to] = static_cast<float>(scale * static_cast<double>(values[index]));
  }
  return stored;
}

class ReferenceRun {
 public:
  ReferenceRun(const tests::Fixture& fixture, const Group& world, int micro_batches, parallel::Sharding sharding)
      : fixture_(fixture),
        world_(world),
        micro_batches_(micro_batches),
        sharding_(sharding),
        report_(world, fmt::format("{}, {} ranks, {} micro-batches, {} steps", fixture.id(), world.size(), micro_batches,
                                   sharding_text())),
        model_(model_options(fixture.index.at("config"))) {}

  int run() {
    const std::string folder = fixture_.id().substr(0, fixture_.id().find('/'));
    models::load_gpt2(model_, tests::fixture(folder + "/init").file.string());
    const SafetensorsFile batches = tests::fixture(folder + "/batches").tensors();
    const json& hyper = fixture_.index.at("hyper");
    const std::string targets_name = hyper.value("targets", "targets");
    const Shape shape = batches.at("input_ids").shape;
    const auto tokens = tests::read_integers(batches, "input_ids");
    const auto targets = tests::read_integers(batches, targets_name);

    parallel::DataParallel data_parallel(model_, ProcessMesh(world_),
                                         {.bucket_bytes = 40000, .first_bucket_bytes = 10000, .sharding = sharding_});
    const auto optimizer = make_optimizer(hyper, model_.store());
    const optim::Schedule schedule = make_schedule(hyper);
    const std::int64_t share = shape[1] / world_.size() / micro_batches_;
    double largest = 0;
    for (std::int64_t step = 0; step < shape[0]; ++step) {
      auto reduction = data_parallel.begin_step(micro_batches_);
      for (int micro = 0; micro < micro_batches_; ++micro) {
        const std::int64_t first = (world_.rank() * micro_batches_ + micro) * share;
        Tape tape;
        reduction.listen(tape);
        const auto loss = model_.loss(rows(tokens, shape, step, first, share), rows(targets, shape, step, first, share));
        loss.backward();
        reduction.add(loss);
      }
      const StepSummary summary = reduction.finish();
      if (step == 0) data_parallel.gather_gradients();
      largest = std::max(largest, compare_step(step, summary));
      optimizer->set_learning_rate(schedule(step));
      optimizer->step(summary, {.clip_norm = hyper.value("clip", 0.0)});
    }
    compare_final();
    if (world_.rank() == 0) {
      std::printf("%s: %d ranks, %d micro-batches, %s steps: loss within %.2e\n", fixture_.id().c_str(), world_.size(),
                  micro_batches_, sharding_text(), largest);
    }
    return report_.failures();
  }

 private:
  const char* sharding_text() const { return sharding_ == parallel::Sharding::on ? "sharded" : "replicated"; }

  double compare_step(std::int64_t step, const StepSummary& summary) {
    const auto at = static_cast<std::size_t>(step);
    const json& values = fixture_.index.at("values");
    const json& tolerance = fixture_.index.at("tolerance");
    const double difference = std::abs(summary.loss() - values.at("loss_f64")[at].get<double>());
    report_.expect(difference <= tolerance.at("loss_abs").get<double>(),
                   fmt::format("step {}: loss {} is off by {}", step, summary.loss(), difference));
    const double norm = values.at("grad_norm")[at];
    report_.expect(std::abs(summary.gradient_norm - norm) <= tolerance.at("grad_step0").at("rtol").get<double>() * norm,
                   fmt::format("step {}: gradient norm {}, wanted {}", step, summary.gradient_norm, norm));
    if (step == 0) {
      compare_tensors(
          "grad_step0.", {.atol = tolerance.at("grad_step0").at("atol"), .rtol = tolerance.at("grad_step0").at("rtol")},
          [&](int index) { return model_.store().gradient<float>(index); }, summary.gradient_scale);
    }
    return difference;
  }

  void compare_final() {
    compare_tensors(
        "final.", {.atol = fixture_.index.at("tolerance").at("final_param_abs"), .rtol = 0},
        [&](int index) { return model_.store().values<float>(index); }, 1);
  }

  template <typename TensorOf>
  void compare_tensors(const std::string& prefix, tests::Tolerance tolerance, TensorOf tensor_of, double scale) {
    const SafetensorsFile expected = fixture_.tensors();
    for (int index = 0; index < model_.store().num_parameters(); ++index) {
      const ParameterInfo& parameter = model_.store().parameter(index);
      if (expected.find(prefix + parameter.name) == nullptr) continue;
      auto got = in_stored_layout(parameter, tensor_of(index).span(), scale);
      auto wanted = tests::read_floats(expected, prefix + parameter.name);
      if (prefix == "final." && parameter.name.ends_with("c_attn.bias")) {  // the keys' gradient is zero in exact arithmetic
        const auto width = static_cast<std::ptrdiff_t>(got.size() / 3);
        got.erase(got.begin() + width, got.begin() + 2 * width);
        wanted.erase(wanted.begin() + width, wanted.begin() + 2 * width);
      }
      const std::string worst = tests::mismatch(got, wanted, tolerance);
      report_.expect(worst.empty(), fmt::format("{}{}: {}", prefix, parameter.name, worst));
    }
  }

  const tests::Fixture& fixture_;
  const Group& world_;
  int micro_batches_;
  parallel::Sharding sharding_;
  Report report_;
  models::Gpt<Float32> model_;
};

int run_all(const Group& world) {
  int failures = 0;
  int runs = 0;
  for (const tests::Fixture& fixture : tests::fixtures_of_kind("training_run")) {
    if (fixture.index.at("model") != "gpt2") continue;
    for (const int micro_batches : {1, 2}) {
      for (const auto sharding : {parallel::Sharding::off, parallel::Sharding::on}) {
        if (world.size() == 1 && sharding == parallel::Sharding::on) continue;
        failures += ReferenceRun(fixture, world, micro_batches, sharding).run();
        ++runs;
      }
    }
  }
  world.all_reduce(std::span(&failures, 1)).wait_on_host();
  return failures == 0 && runs > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (!tests::refs_folder()) tests::skip_program("the reference results are missing");
  const std::string backend = argc > 1 ? argv[1] : "mpi";
  return launch(parse_backend(backend), {.ranks = argc > 2 ? std::atoi(argv[2]) : 1}, run_all);
}
