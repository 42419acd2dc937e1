// A GPT on meshes of data, pipeline and tensor axes.

#include <cmath>
#include <fstream>
#include <iterator>
#include <mutex>

#include "catch.hpp"
#include "gpt_mesh_runs.hpp"
#include "temporary_folder.hpp"
#include "trireme/models/architectures/generate.hpp"
#include "trireme/models/architectures/layer_costs.hpp"
#include "trireme/models/folders/gpt2_safetensors.hpp"
#include "trireme/optim/lamb.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a GPT trains on every mesh as on one rank") {
  using parallel::Sharding;
  GptTraining wanted;
  testing::run_ranks(1, [&](const Group& world) { wanted = train_gpt(world, {}); });
  std::mutex whole;  // its tensors are read by all ranks
  const std::vector<double> ends_cost_most{9, 1, 1, 1, 1, 1, 1, 1, 1, 9};
  const std::vector<GptLayout> layouts{
      {.pipeline = 2, .schedule = "gpipe"},
      {.pipeline = 2, .schedule = "zb"},
      {.pipeline = 4, .schedule = "1f1b"},
      {.pipeline = 4, .schedule = "zb", .layer_costs = ends_cost_most},
      {.pipeline = 2, .schedule = "interleaved", .chunks = 2},
      {.pipeline = 4, .schedule = "interleaved", .chunks = 2},
      {.data = 2, .pipeline = 2, .schedule = "zb", .sharding = Sharding::optimizer},
      {.data = 2, .pipeline = 2, .schedule = "1f1b"},
      {.pipeline = 2, .tensor = 2, .schedule = "1f1b"},
      {.pipeline = 2, .tensor = 2, .sequence_parallel = true, .schedule = "zb"},
      {.pipeline = 2, .tensor = 2, .schedule = "zb", .layer_costs = {1, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
      {.data = 2, .pipeline = 2, .tensor = 2, .sequence_parallel = true, .schedule = "interleaved", .chunks = 2},
      {.data = 2, .pipeline = 2, .tensor = 2, .schedule = "gpipe", .sharding = Sharding::optimizer},
  };
  for (const GptLayout& layout : layouts) {
    INFO(layout.str());
    testing::run_ranks(layout.ranks(), [&](const Group& world) {
      const GptTraining training = train_gpt(world, layout);
      const std::lock_guard lock(whole);
      require_same_training(training, wanted);
    });
  }
}

TEST_CASE("a GPT drops the same shares of attention on every mesh") {
  GptTraining wanted, without;
  testing::run_ranks(1, [&](const Group& world) {
    wanted = train_gpt(world, {.attention_dropout = 0.2});
    without = train_gpt(world, {});
  });
  CHECK_THROWS_AS(require_same_training(without, wanted), Error);
  std::mutex whole;
  for (const GptLayout& layout : std::vector<GptLayout>{
           {.data = 2, .pipeline = 2, .schedule = "zb", .attention_dropout = 0.2},
           {.data = 2, .tensor = 2, .attention_dropout = 0.2},
           {.pipeline = 2, .tensor = 2, .sequence_parallel = true, .schedule = "zb", .attention_dropout = 0.2}}) {
    INFO(layout.str());
    testing::run_ranks(layout.ranks(), [&](const Group& world) {
      const GptTraining training = train_gpt(world, layout);
      const std::lock_guard lock(whole);
      require_same_training(training, wanted);
    });
  }
}

TEST_CASE("an overflow on one stage makes every rank skip the step") {
  testing::run_ranks(4, [](const Group& world) {
    const ProcessMesh mesh(world, {.pipeline = 2, .tensor = 2});
    models::Gpt<MixedFloat16> model(gpt_options, parallel::model_context(mesh));
    model.initialize({.seed = 7});
    parallel::DataParallel replicas(model, mesh, {.loss_scale = {.init_scale = 1024}});
    optim::Lamb<MixedFloat16> optimizer(model, {.learning_rate = 0.01});
    for (std::int64_t number = 0; number < 3; ++number) {
      parallel::Step step = replicas.begin(number);
      step.backward(model, gpt_batches(0, 0, 1, 8));
      if (number == 1 && world.rank() == 1) {  // in its part of a divided weight
        model.store().gradient<float>(model.store().find("transformer.h.0.mlp.c_fc.weight")).data()[0] = INFINITY;
      }
      const bool stepped = step.update(optimizer, {.clip_norm = 1});
      require(stepped == (number != 1), "step {} was {}", number, stepped ? "taken" : "skipped");
    }
    const amp::GradScaler& scaler = replicas.scaler();
    require(scaler.scale() == 512 && scaler.skipped_steps() == 1, "a scale of {}", scaler.scale());
  });
}

TEST_CASE("a divided GPT writes the file, samples the text and has the loss of a whole one") {
  const tests::TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return (folder.path() / name).string(); };
  const std::vector<std::int32_t> prompt{3, 1, 4};
  const Tensor<std::int32_t> read = gpt_batches(0, 0, 1, 2).front().tokens;
  models::Gpt<Float32> whole(gpt_options);
  whole.initialize({.seed = 7});
  models::save_gpt2(whole, path("whole"));
  const auto wanted = models::generate(whole, prompt, {.count = 12, .seed = 5});
  const double loss = whole.loss(read, read).mean();
  for (const GptLayout& layout : std::vector<GptLayout>{{.pipeline = 2},
                                                        {.pipeline = 4},
                                                        {.pipeline = 2, .chunks = 3},
                                                        {.pipeline = 2, .tensor = 2},
                                                        {.pipeline = 2, .tensor = 2, .sequence_parallel = true, .chunks = 2}}) {
    INFO(layout.str());
    testing::run_ranks(layout.ranks(), [&](const Group& world) {
      const ProcessMesh mesh(world, {.pipeline = layout.pipeline, .tensor = layout.tensor});
      models::Gpt<Float32> model(gpt_options, parallel::model_context(mesh, {.sequence_parallel = layout.sequence_parallel,
                                                                             .num_chunks = layout.chunks}));
      model.initialize({.seed = 8});
      models::load_pretrained(model, path("whole"));
      world.agree([&] { models::save_gpt2(model, path("joined")); });
      require(content(path("joined")) == content(path("whole")), "other bytes");
      require(models::generate(model, prompt, {.count = 12, .seed = 5}) == wanted, "another text");
      require(std::abs(model.loss(read, read).mean() - loss) < 1e-6, "another loss");
    });
  }
}

TEST_CASE("a file of weights that can't be written is one error on all ranks") {
  const tests::TemporaryFolder folder;
  const std::string path = (folder.path() / "missing" / "weights").string();
  testing::run_ranks(4, [&](const Group& world) {
    const models::Gpt<Float32> model(gpt_options, parallel::model_context(ProcessMesh(world, {.pipeline = 2, .tensor = 2})));
    model.store().initialize<float>(7);
    try {
      world.agree([&] { models::save_gpt2(model, path); });
    } catch (const Error& error) {
      require(error.fields().path.find(path) == 0 && error.fields().rank == 0, "another error: {}", error.what());
      return;
    }
    require(false, "no error");
  });
}

TEST_CASE("what layers cost is measured on one rank, blocks alike") {
  const auto costs = models::measured_layer_costs<Float32>(
      {.layers = 3, .heads = 2, .width = 16, .block = gpt_time_steps, .vocabulary = 200}, 4);
  REQUIRE(costs.size() == 5);
  CHECK(costs[0] > 0);
  CHECK((costs[1] > 0 && costs[1] == costs[2] && costs[2] == costs[3]));
  CHECK(costs[4] > 0);
}

TEST_CASE("costs that don't fit the layers, or differ between ranks, are refused") {
  const auto refused = [](const std::function<std::vector<double>(int rank)>& costs, const std::string& text) {
    CHECK_THROWS_WITH(testing::run_ranks(2,
                                         [&](const Group& world) {
                                           const models::Gpt<Float64> model(
                                               gpt_options, parallel::model_context(ProcessMesh(world, {.pipeline = 2}),
                                                                                    {.layer_costs = costs(world.rank())}));
                                         }),
                      ContainsSubstring(text));
  };
  refused([](int) { return std::vector<double>(8, 1); },
          "a list of 10 layers, from transformer.wte, transformer.wpe, transformer.drop to transformer.ln_f, lm_head; it got 8 "
          "costs");
  refused([](int) { return std::vector<double>(10, -1); }, "0 or more, got -1");
  refused([](int rank) { return std::vector<double>(10, rank); }, "layer_costs");
}

TEST_CASE("a model's context is that of the mesh, with one seed on all ranks") {
  testing::run_ranks(4, [](const Group& world) {
    const ProcessMesh mesh(world, {.pipeline = 2, .tensor = 2});
    const ModelContext context = parallel::model_context(mesh, {.num_chunks = 3, .seed = 7});
    const int stage = mesh.pipeline().rank();
    require(context.stages() == std::vector{stage, stage + 2, stage + 4} && context.num_stages() == 6, "stages of {}", stage);
    require(context.tensor->size() == 2 && context.tensor->rank() == mesh.tensor().rank(), "the ranks that split layers");
    require(context.seed == 7 && parallel::model_context(mesh).seed == 1, "the seed");
  });
  CHECK_THROWS_WITH(testing::run_ranks(2,
                                       [](const Group& world) {
                                         const auto seed = static_cast<std::uint64_t>(3 + world.rank());
                                         parallel::model_context(ProcessMesh(world), {.seed = seed});
                                       }),
                    ContainsSubstring("the same model settings: rank 0 has seed = 3, rank 1 has seed = 4"));
}

TEST_CASE("a GPT of fewer layers than stages is refused") {
  CHECK_THROWS_WITH(testing::run_ranks(2,
                                       [](const Group& world) {
                                         const ProcessMesh mesh(world, {.pipeline = 2});
                                         models::GptOptions options = gpt_options;
                                         options.layers = 1;
                                         const models::Gpt<Float64> model(options,
                                                                          parallel::model_context(mesh, {.num_chunks = 2}));
                                       }),
                    ContainsSubstring("3 layers can't be divided into 4 stages of one layer or more"));
}
