// A GPT on meshes of data, pipeline and tensor axes.

#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/amp/grad_scaler.hpp"
#include "trireme/models/generate.hpp"
#include "trireme/models/gpt.hpp"
#include "trireme/models/gpt2_safetensors.hpp"
#include "trireme/optim/lamb.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/model_part.hpp"
#include "trireme/parallel/pipeline.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t batch = 8;
constexpr std::int64_t time_steps = 8;
constexpr int micro_batches = 4;  // of a replica
constexpr models::GptOptions gpt_options{
    .layers = 8, .heads = 2, .width = 16, .block = time_steps, .vocabulary = 37, .dropout = 0.1};

struct Layout {
  int data = 1;
  int pipeline = 1;
  int tensor = 1;
  bool sequence_parallel = false;
  std::string schedule = "1f1b";
  int chunks = 1;
  parallel::Sharding sharding = parallel::Sharding::off;
};

Tensor<std::int32_t> tokens(std::uint64_t step, std::int64_t first, std::int64_t count, int shift) {
  Tensor<std::int32_t> tokens({count, time_steps});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    tokens.data()[i] = static_cast<std::int32_t>((first * time_steps + i) * 7 + static_cast<std::int64_t>(step) + shift) % 37;
  }
  return tokens;
}

struct Result {
  std::vector<StepSummary> summaries;
  std::unique_ptr<models::Gpt<Float64>> model;
};

Result trained(const Group& world, const Layout& layout) {
  const ProcessMesh mesh(world, {.data = layout.data, .pipeline = layout.pipeline, .tensor = layout.tensor});
  const auto part = parallel::model_part(mesh, {.sequence_parallel = layout.sequence_parallel, .num_chunks = layout.chunks});
  auto model = std::make_unique<models::Gpt<Float64>>(gpt_options, part);
  model->initialize({.seed = 7});
  parallel::DataParallel data_parallel(*model, mesh,
                                       {.bucket_bytes = 4000, .first_bucket_bytes = 400, .sharding = layout.sharding});
  optim::Lamb<Float64> optimizer(model->store(), {.learning_rate = 0.01});

  const std::int64_t samples = batch / layout.data / micro_batches;
  const std::int64_t first_of_rank = mesh.data().rank() * samples * micro_batches;
  std::uint64_t step = 0;
  const auto first_of = [&](int micro_batch) { return first_of_rank + micro_batch * samples; };
  std::vector<parallel::PipelineStage<double>> stages;
  for (const int stage : part.stages) {
    const Shape between = model->stage_shape(samples, time_steps);
    parallel::PipelineStage<double> described;
    if (stage > 0) described.input = between;
    if (stage + 1 < part.num_stages) {
      described.output = between;
      described.forward = [&, stage](const Variable<double>& x, int micro_batch) {
        return model->stage(stage, x, tokens(step, first_of(micro_batch), samples, 0));
      };
    } else {
      described.loss = [&](const Variable<double>& x, int micro_batch) {
        const auto read = tokens(step, first_of(micro_batch), samples, 0);
        const auto targets = tokens(step, first_of(micro_batch), samples, 3);
        return part.num_stages == 1 ? model->loss(read, targets) : model->last_stage(x, targets);
      };
    }
    stages.push_back(std::move(described));
  }
  const auto schedule = parallel::make_pipeline_schedule(
      {.name = layout.schedule, .num_ranks = layout.pipeline, .num_chunks = layout.chunks, .num_micro_batches = micro_batches});
  parallel::Pipeline<double> pipeline(mesh, schedule, std::move(stages));
  Result result;
  for (; step < 3; ++step) {
    auto reduction = data_parallel.begin_step(micro_batches);
    pipeline.run(reduction, {.seed = 3, .step = step, .first_sample = first_of_rank}, samples);
    result.summaries.push_back(reduction.finish());
    optimizer.step(result.summaries.back(), {.clip_norm = 0.5});
  }
  result.model = std::move(model);
  return result;
}

void require_near(double had, double wanted, const std::string& what) {
  require(std::abs(had - wanted) <= 1e-11 * (1 + std::abs(wanted)), "{}: {} instead of {}", what, had, wanted);
}

void require_parts_near(FlatStore& part, FlatStore& whole) {
  for (int index = 0; index < part.num_parameters(); ++index) {
    const ParameterInfo& parameter = part.parameter(index);
    const Tensor<double> had = part.values<double>(index);
    const Tensor<double> wanted = whole.values<double>(whole.find(parameter.name));
    for (const auto& piece : parameter.placement.pieces()) {
      for (std::int64_t i = 0; i < piece.count; ++i) {
        require_near(had.data()[piece.here + i], wanted.data()[piece.whole + i], parameter.name);
      }
    }
  }
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a GPT trains on every mesh as on one rank") {
  using parallel::Sharding;
  Result wanted;
  testing::run_ranks(1, [&](const Group& world) { wanted = trained(world, {}); });
  std::mutex whole;  // its tensors are read by all ranks
  const std::vector<Layout> layouts{
      {.pipeline = 2, .schedule = "gpipe"},
      {.pipeline = 2, .schedule = "zb"},
      {.pipeline = 4, .schedule = "1f1b"},
      {.pipeline = 2, .schedule = "interleaved", .chunks = 2},
      {.pipeline = 4, .schedule = "interleaved", .chunks = 2},
      {.data = 2, .pipeline = 2, .schedule = "zb", .sharding = Sharding::on},
      {.data = 2, .pipeline = 2, .schedule = "1f1b"},
      {.pipeline = 2, .tensor = 2, .schedule = "1f1b"},
      {.pipeline = 2, .tensor = 2, .sequence_parallel = true, .schedule = "zb"},
      {.data = 2, .pipeline = 2, .tensor = 2, .sequence_parallel = true, .schedule = "interleaved", .chunks = 2},
      {.data = 2, .pipeline = 2, .tensor = 2, .schedule = "gpipe", .sharding = Sharding::on},
  };
  for (const Layout& layout : layouts) {
    INFO(layout.data << " x " << layout.pipeline << " x " << layout.tensor << ", " << layout.schedule);
    testing::run_ranks(layout.data * layout.pipeline * layout.tensor, [&](const Group& world) {
      const Result result = trained(world, layout);
      for (std::size_t step = 0; step < result.summaries.size(); ++step) {
        require_near(result.summaries[step].loss(), wanted.summaries[step].loss(), "loss");
        require_near(result.summaries[step].gradient_norm, wanted.summaries[step].gradient_norm, "norm");
      }
      const std::lock_guard lock(whole);
      require_parts_near(result.model->store(), wanted.model->store());
    });
  }
}

TEST_CASE("an overflow on one stage makes every rank skip the step") {
  testing::run_ranks(4, [](const Group& world) {
    const ProcessMesh mesh(world, {.pipeline = 2, .tensor = 2});
    models::Gpt<MixedFloat16> model(gpt_options, parallel::model_part(mesh));
    model.initialize({.seed = 7});
    parallel::DataParallel data_parallel(model, mesh);
    optim::Lamb<MixedFloat16> optimizer(model.store(), {.learning_rate = 0.01});
    amp::GradScaler scaler({.init_scale = 1024});
    const Tensor<std::int32_t> read = tokens(0, 0, batch, 0);
    const Tensor<std::int32_t> wanted = tokens(0, 0, batch, 3);
    parallel::PipelineStage<float> stage;
    if (mesh.pipeline().rank() == 0) {
      stage.output = model.stage_shape(batch, time_steps);
      stage.forward = [&](const Variable<float>&, int) { return model.stage(0, {}, read); };
    } else {
      stage.input = model.stage_shape(batch, time_steps);
      stage.loss = [&](const Variable<float>& x, int) { return scaler.scale(model.last_stage(x, wanted)); };
    }
    parallel::Pipeline<float> pipeline(mesh, parallel::make_pipeline_schedule({.num_ranks = 2}), {stage});
    for (int step = 0; step < 3; ++step) {
      auto reduction = data_parallel.begin_step();
      pipeline.run(reduction, {}, batch);
      if (step == 1 && world.rank() == 1) {  // in its part of a divided weight
        model.store().gradient<float>(model.store().find("transformer.h.0.mlp.c_fc.weight")).data()[0] = INFINITY;
      }
      StepSummary summary = reduction.finish();
      scaler.unscale(optimizer, summary);
      const bool stepped = scaler.step(optimizer, summary, {.clip_norm = 1});
      require(stepped == (step != 1), "step {} was {}", step, stepped ? "taken" : "skipped");
      scaler.update();
    }
    require(scaler.scale() == 512 && scaler.skipped_steps() == 1, "a scale of {}", scaler.scale());
  });
}

TEST_CASE("a divided GPT writes the file, samples the text and has the loss of a whole one") {
  const tests::TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return (folder.path() / name).string(); };
  const std::vector<std::int32_t> prompt{3, 1, 4};
  const Tensor<std::int32_t> read = tokens(0, 0, 2, 0);
  models::Gpt<Float32> whole(gpt_options);
  whole.initialize({.seed = 7});
  models::save_gpt2(whole, path("whole"));
  const auto wanted = models::generate(whole, prompt, {.count = 12, .seed = 5});
  const double loss = whole.loss(read, read).mean();
  for (const Layout& layout : std::vector<Layout>{{.pipeline = 2},
                                                  {.pipeline = 4},
                                                  {.pipeline = 2, .chunks = 3},
                                                  {.pipeline = 2, .tensor = 2},
                                                  {.pipeline = 2, .tensor = 2, .sequence_parallel = true, .chunks = 2}}) {
    INFO("pipeline " << layout.pipeline << " x tensor " << layout.tensor << ", " << layout.chunks << " chunks");
    testing::run_ranks(layout.pipeline * layout.tensor, [&](const Group& world) {
      const ProcessMesh mesh(world, {.pipeline = layout.pipeline, .tensor = layout.tensor});
      models::Gpt<Float32> model(gpt_options, parallel::model_part(mesh, {.sequence_parallel = layout.sequence_parallel,
                                                                          .num_chunks = layout.chunks}));
      model.initialize({.seed = 8});
      models::load_gpt2(model, path("whole"));
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
    const models::Gpt<Float32> model(gpt_options, parallel::model_part(ProcessMesh(world, {.pipeline = 2, .tensor = 2})));
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

TEST_CASE("a GPT of fewer layers than stages is refused") {
  CHECK_THROWS_WITH(testing::run_ranks(2,
                                       [](const Group& world) {
                                         const ProcessMesh mesh(world, {.pipeline = 2});
                                         models::GptOptions options = gpt_options;
                                         options.layers = 3;
                                         const models::Gpt<Float64> model(options,
                                                                          parallel::model_part(mesh, {.num_chunks = 2}));
                                       }),
                    ContainsSubstring("a GPT of 3 layers has at most 3 stages, not 4"));
}
