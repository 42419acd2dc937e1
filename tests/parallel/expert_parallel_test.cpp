// Mixtures of experts whose experts the ranks of an axis divide: the same training as on one rank.

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "temporary_folder.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/models/hugging_face.hpp"
#include "trireme/optim/named.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/parallel/step.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using trireme::test::expect;

namespace {

constexpr std::int64_t samples = 8, length = 6, vocabulary = 19;
constexpr int steps = 5;

struct Layout {
  int data = 1;
  int expert = 1;
  int tensor = 1;
  int micro_batches = 1;
  parallel::Sharding sharding = parallel::Sharding::none;

  int ranks() const { return data * expert * tensor; }
  std::string str() const {
    return fmt::format("data {} x expert {} x tensor {}, {} micro-batches, {}", data, expert, tensor, micro_batches,
                       sharding == parallel::Sharding::none ? "replicated" : "sharded");
  }
  ProcessMesh mesh(const Group& world) const { return ProcessMesh(world, {.data = data, .tensor = tensor, .expert = expert}); }
};

const std::vector<Layout> layouts{{.micro_batches = 4},
                                  {.expert = 2},
                                  {.expert = 4},
                                  {.expert = 2, .micro_batches = 2},
                                  {.data = 2, .expert = 2},
                                  {.data = 2, .expert = 2, .sharding = parallel::Sharding::optimizer},
                                  {.data = 2, .tensor = 2}};

models::LlamaOptions model_options() {
  return {.layers = 2,
          .heads = 2,
          .width = 16,
          .hidden = 12,
          .vocabulary = vocabulary,
          .tied = true,
          .experts = {.count = 4,
                      .top_k = 2,
                      .renormalise = false,
                      .auxiliary_loss = 0.5,
                      .z_loss = 0.1,
                      .shared_hidden = 8,
                      .shared_gate = true},
          .weight_deviation = 0.2};
}

// Rows of the step that a rank's micro-batch has; every fifth target is ignored in some rows.
data::TokenBatch batch_of(std::int64_t step, std::int64_t first, std::int64_t rows) {
  data::TokenBatch batch{
      .tokens = Tensor<std::int32_t>({rows, length}), .targets = Tensor<std::int32_t>({rows, length}), .first_sample = first};
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t t = 0; t < length; ++t) {
      const std::int64_t number = ((step * samples + first + row) * length + t) * 7919;
      batch.tokens.at(row, t) = static_cast<std::int32_t>(number % vocabulary);
      const bool ignored = (first + row) % 3 == 0 && t % 5 == 0;
      batch.targets.at(row, t) = ignored ? ops::ignored_target : static_cast<std::int32_t>(number / 3 % vocabulary);
    }
  }
  return batch;
}

struct Training {
  Training(const Group& world, const Layout& of, const std::string& optimizer_name)
      : layout(of),
        mesh(layout.mesh(world)),
        model(model_options(), parallel::model_context(mesh)),
        replicas((model.initialize({.seed = 3}), model), mesh, {.sharding = layout.sharding}),
        optimizer(optim::make_optimizer<Float32, Cpu>(optimizer_name, model, {.learning_rate = 0.02})) {}

  // Losses and norms of the gradient.
  std::vector<double> train(std::int64_t from, std::int64_t to) {
    std::vector<double> results;
    const std::int64_t rows = samples / mesh.batch().size() / layout.micro_batches;
    for (std::int64_t number = from; number < to; ++number) {
      std::vector<data::TokenBatch> batches;
      for (int micro = 0; micro < layout.micro_batches; ++micro) {
        batches.push_back(batch_of(number, (mesh.batch().rank() * layout.micro_batches + micro) * rows, rows));
      }
      parallel::Step step = replicas.begin(number, layout.micro_batches);
      step.backward(model, batches);
      step.update(*optimizer, {.clip_norm = 0.8});
      results.push_back(step.finish().loss());
      results.push_back(step.finish().gradient_norm);
    }
    return results;
  }

  Layout layout;
  ProcessMesh mesh;
  models::Llama<Float32> model;
  parallel::DataParallel replicas;
  std::unique_ptr<optim::AnyOptimizer> optimizer;
};

std::vector<double> results_of(const Layout& layout, const std::string& optimizer) {
  std::vector<double> results;
  testing::run_ranks(layout.ranks(), [&](const Group& world) {
    const std::vector<double> here = Training(world, layout, optimizer).train(0, steps);
    if (world.rank() == 0) results = here;
  });
  return results;
}

void expect_near(const std::vector<double>& results, const std::vector<double>& wanted) {
  REQUIRE(results.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    INFO("step " << i / 2 << (i % 2 == 0 ? ", loss " : ", norm ") << results[i] << ", not " << wanted[i]);
    CHECK(std::abs(results[i] - wanted[i]) < 2e-5 * wanted[i]);
  }
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("losses and norms of a mixture of experts do not depend on the layout") {
  for (const char* optimizer : {"sgd", "adamw", "lamb"}) {
    const std::vector<double> wanted = results_of({}, optimizer);
    for (const Layout& layout : layouts) {
      INFO(optimizer << ", " << layout.str());
      expect_near(results_of(layout, optimizer), wanted);
    }
  }
}

TEST_CASE("a checkpoint of a mixture goes from any layout to any other, and its folder has the same bytes") {
  const std::vector<double> wanted = results_of({}, "adamw");
  const std::vector<Layout> all{
      {}, {.expert = 2}, {.data = 2, .expert = 2, .sharding = parallel::Sharding::optimizer}, {.data = 2, .tensor = 2}};
  for (const Layout& before : all) {
    const tests::TemporaryFolder folder;
    const auto state_of = [](Training& training) {
      State state;
      training.replicas.add_to(state);
      training.optimizer->add_to(state, "optimizer.");
      return state;
    };
    testing::run_ranks(before.ranks(), [&](const Group& world) {
      Training training(world, before, "adamw");
      training.train(0, 3);
      checkpoint::Checkpoints checkpoints(world, {.directory = (folder.path() / "checkpoints").string()});
      State state = state_of(training);
      checkpoints.save(3, state);
      checkpoints.finish();
      if (training.mesh.data().rank() == 0) models::save_pretrained(training.model, folder.path() / "model");
    });
    const std::string saved = content(folder.path() / "model" / "model.safetensors");
    for (const Layout& after : all) {
      INFO("from " << before.str() << " to " << after.str());
      std::vector<double> results;
      testing::run_ranks(after.ranks(), [&](const Group& world) {
        Training training(world, after, "adamw");
        checkpoint::Checkpoints checkpoints(world, {.directory = (folder.path() / "checkpoints").string()});
        State state = state_of(training);
        checkpoints.load(3, state);
        if (training.mesh.data().rank() == 0) models::save_pretrained(training.model, folder.path() / "again");
        const std::vector<double> here = training.train(3, steps);
        if (world.rank() == 0) results = here;
      });
      expect_near(results, {wanted.begin() + 6, wanted.end()});
      CHECK(content(folder.path() / "again" / "model.safetensors") == saved);
    }
  }
}

TEST_CASE("what an expert axis is not combined with is refused") {
  const auto refused = [](int ranks, const auto& work, const std::string& text) {
    CHECK_THROWS_WITH(testing::run_ranks(ranks, work), ContainsSubstring(text));
  };
  refused(
      4, [](const Group& world) { ProcessMesh(world, {.tensor = 2, .expert = 2}); }, "is not combined with");
  refused(
      3, [](const Group& world) { ProcessMesh(world, {.expert = 2}); }, "needs a multiple of 2 ranks, there are 3");
  refused(
      3, [](const Group& world) { Training(world, {.expert = 3}, "sgd"); }, "3 ranks of an expert axis can't divide 4 experts");
  refused(
      2,
      [](const Group& world) {
        const ProcessMesh mesh(world, {.expert = 2});
        models::Llama<Float32> model(model_options(), parallel::model_context(mesh));
        model.initialize();
        parallel::DataParallel replicas(model, mesh, {.sum = parallel::FixedBits{.micro_batches = 2}});
      },
      "with an expert axis gradients are summed by Plain");
  refused(
      2,
      [](const Group& world) {
        models::Llama<Float32> model(model_options());
        model.initialize();
        parallel::DataParallel replicas(model, ProcessMesh(world, {.expert = 2}));
      },
      "give both the same mesh");
}
