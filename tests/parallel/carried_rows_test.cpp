// A model that carries states for the rows of the batch, on all kinds of meshes.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "checkpoint/simulated_file_system.hpp"
#include "comm/expect.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t batch_size = 8;
constexpr std::int64_t time_steps = 5;
constexpr std::int64_t vocabulary = 13;
constexpr int steps = 6;
constexpr int anew = 4;  // in this step all rows begin anew

struct Setup {
  MeshOptions mesh = {1, 1, 1};
  int accumulation = 1;
  bool fixed_bits = false;
  parallel::Sharding sharding = parallel::Sharding::none;
  std::optional<MeshOptions> resumed_on = {};  // after half of the steps
  int resumed_accumulation = 1;
  bool gives_up = false;   // every step is begun twice
  bool skips = false;      // every step has a loss of inf first, and is left out
  bool evaluates = false;  // after each step
};

std::string text_of(const Setup& setup) {
  const auto mesh = [](const MeshOptions& axes) { return fmt::format("{}x{}x{}", axes.data, axes.pipeline, axes.tensor); };
  return fmt::format("mesh {}, {} micro-batches{}{}{}{}{}{}", mesh(setup.mesh), setup.accumulation,
                     setup.fixed_bits ? ", fixed bits" : "", setup.sharding == parallel::Sharding::optimizer ? ", sharded" : "",
                     setup.resumed_on ? ", resumed on " + mesh(*setup.resumed_on) : "", setup.gives_up ? ", given up" : "",
                     setup.skips ? ", skipped" : "", setup.evaluates ? ", evaluates" : "");
}

struct Net : models::LstmLm<Float32> {
  using LstmLm::LstmLm;
  Loss<float> loss(const Value& logits, const data::TokenBatch& batch) const {
    Loss<float> loss = LstmLm::loss(logits, batch);
    if (overflows) loss.sum = scale(loss.sum, std::numeric_limits<float>::infinity());
    return loss;
  }
  bool overflows = false;
};

class Run {
 public:
  Run(const Group& world, const Setup& setup)
      : setup_(setup),
        mesh_(world, setup.mesh),
        model_({.vocabulary = vocabulary, .embedding = 6, .hidden = 10, .layers = 2, .dropout = 0.1},
               parallel::model_context(mesh_, {.batch_size = batch_size})) {
    model_.initialize();
    parallel::ParallelOptions options{.sharding = setup.sharding,
                                      .buckets = {.bytes = 800, .first_bytes = 200, .slice_bytes = 400}};
    if (setup.fixed_bits) options.sum = parallel::FixedBits{.micro_batches = setup.mesh.data * setup.accumulation};
    replicas_.emplace(model_, mesh_, options);
    optimizer_.emplace(model_, optim::AdamWOptions{.learning_rate = 0.02});
    replicas_->add_to(state_);
    optimizer_->add_to(state_);
  }

  const State& state() const { return state_; }

  void train(int begin, int end, std::vector<double>& losses) {
    for (int number = begin; number < end; ++number) {
      if (setup_.gives_up) const parallel::Step given_up = backward(number);
      if (setup_.skips) {
        model_.overflows = true;
        parallel::Step step = backward(number);
        model_.overflows = false;
        test::expect(!step.update(*optimizer_, {.non_finite = optim::NonFinitePolicy::skip}), "step {} to be skipped", number);
      }
      parallel::Step step = backward(number);
      test::expect(step.update(*optimizer_, {.clip_norm = 0.5}), "step {} to be finite", number);
      losses.push_back(step.finish().loss());
      if (setup_.evaluates) evaluate();
    }
  }

 private:
  parallel::Step backward(int number) {
    parallel::Step step = replicas_->begin(number, setup_.accumulation);
    step.backward(model_, batches(number, setup_.accumulation));
    return step;
  }

  void evaluate() {
    model_.eval();
    for (const bool continues : {false, true}) {
      data::TokenBatch batch = batches(0, 1).front();
      batch.continues = continues;
      nn::loss_of(model_, batch);
    }
    model_.train();
  }

  std::vector<data::TokenBatch> batches(int number, int count) const {
    const std::int64_t rows = batch_size / mesh_.data().size() / count;
    std::vector<data::TokenBatch> all;
    for (int index = 0; index < count; ++index) {
      const std::int64_t first = (mesh_.data().rank() * count + index) * rows;
      data::TokenBatch batch{.tokens = Tensor<std::int32_t>({rows, time_steps}),
                             .targets = Tensor<std::int32_t>({rows, time_steps}),
                             .first_sample = number * batch_size + first,
                             .first_row = first,
                             .continues = number % anew != 0};
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t time = 0; time < time_steps; ++time) {
          const std::int64_t at = (first + row) * 31 + number * time_steps + time;
          batch.tokens.data()[row * time_steps + time] = static_cast<std::int32_t>(at * at % vocabulary);
          batch.targets.data()[row * time_steps + time] = static_cast<std::int32_t>((at + 1) * (at + 1) % vocabulary);
        }
      }
      all.push_back(std::move(batch));
    }
    return all;
  }

  Setup setup_;
  ProcessMesh mesh_;
  Net model_;
  std::optional<parallel::DataParallel> replicas_;
  std::optional<optim::AdamW<Float32>> optimizer_;
  State state_;
};

int ranks_of(const MeshOptions& mesh) { return mesh.data * mesh.pipeline * mesh.tensor; }

// The losses of all steps, the same on all ranks.
std::vector<double> losses_of(const Setup& setup) {
  std::vector<double> losses;
  const auto files = std::make_shared<test::SimulatedFileSystem>();
  const auto train = [&](const Setup& part, int begin, int end) {
    std::vector<std::vector<double>> of_ranks(static_cast<std::size_t>(ranks_of(part.mesh)));
    testing::run_ranks(ranks_of(part.mesh), [&](const Group& world) {
      Run run(world, part);
      checkpoint::Checkpoints checkpoints(world, {.directory = "/run", .asynchronous = false, .file_system = files});
      if (begin > 0) checkpoints.load(begin, run.state());
      run.train(begin, end, of_ranks[static_cast<std::size_t>(world.rank())]);
      if (end < steps) checkpoints.save(end, run.state());
    });
    for (const auto& of_rank : of_ranks) CHECK(of_rank == of_ranks.front());
    losses.insert(losses.end(), of_ranks.front().begin(), of_ranks.front().end());
  };
  train(setup, 0, setup.resumed_on ? steps / 2 : steps);
  if (setup.resumed_on) {
    Setup rest = setup;
    rest.mesh = *setup.resumed_on;
    rest.accumulation = setup.resumed_accumulation;
    train(rest, steps / 2, steps);
  }
  REQUIRE(losses.size() == steps);
  return losses;
}

}  // namespace

TEST_CASE("rows are carried alike on every mesh") {
  const std::vector<double> alone = losses_of({});
  const std::vector<Setup> setups = {
      {.accumulation = 4},
      {.resumed_on = MeshOptions{1, 1, 1}, .resumed_accumulation = 2},
      {.gives_up = true},
      {.accumulation = 2, .skips = true},
      {.mesh = {2, 2, 1}, .accumulation = 2, .skips = true},
      {.accumulation = 2, .evaluates = true},
      {.mesh = {2, 1, 1}, .evaluates = true},
      {.mesh = {4, 1, 1}, .accumulation = 2, .sharding = parallel::Sharding::optimizer, .resumed_on = MeshOptions{2, 3, 1}},
      {.mesh = {1, 3, 1}, .accumulation = 4, .gives_up = true, .evaluates = true},
      {.mesh = {2, 2, 1}, .accumulation = 2, .resumed_on = MeshOptions{4, 1, 1}, .gives_up = true, .evaluates = true},
      {.mesh = {1, 2, 2}, .accumulation = 2, .resumed_on = MeshOptions{1, 1, 1}, .resumed_accumulation = 2},
  };
  for (const Setup& setup : setups) {
    INFO(text_of(setup));
    const std::vector<double> losses = losses_of(setup);
    for (std::size_t step = 0; step < steps; ++step) CHECK(losses[step] == Approx(alone[step]).epsilon(1e-5));
  }
}

TEST_CASE("with fixed bits rows are carried to the same bits") {
  const std::vector<double> alone = losses_of({.accumulation = 4, .fixed_bits = true});
  for (const Setup& setup : std::vector<Setup>{
           {.mesh = {2, 1, 1}, .accumulation = 2, .fixed_bits = true, .gives_up = true},
           {.mesh = {4, 1, 1}, .fixed_bits = true, .sharding = parallel::Sharding::optimizer, .evaluates = true},
           {.mesh = {4, 1, 1}, .fixed_bits = true, .resumed_on = MeshOptions{2, 1, 1}, .resumed_accumulation = 2},
       }) {
    INFO(text_of(setup));
    CHECK(losses_of(setup) == alone);
  }
}

TEST_CASE("replicas that all claim the same rows are refused") {
  testing::run_ranks(2, [&](const Group& world) {
    models::LstmLm<Float32> model({.vocabulary = vocabulary, .embedding = 6, .hidden = 10},
                                  ModelContext{.rows = {.batch_size = batch_size, .own = {0, batch_size}}});
    model.initialize();
    test::expect_error(
        ErrorCode::invalid_argument, [&] { parallel::DataParallel(model, ProcessMesh(world)); },
        "buffer lstm.hidden_l0.rows holds rows 0 to 8 of a batch of 8, but this is replica", "parallel::model_context");
  });
}
