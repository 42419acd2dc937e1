#include <atomic>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "pipeline_runs.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/parallel/pipeline/pipeline_schedule.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::parallel;
using trireme::tests::PipelineSetup;

namespace {

void expect_as_on_one_rank(const PipelineSetup& setup) {
  CAPTURE(setup.str());
  CHECK_NOTHROW(
      testing::run_ranks(setup.data * setup.pipeline, [&](const Group& world) { tests::check_pipeline(world, setup); }));
}

}  // namespace

TEST_CASE("every schedule gives one rank's losses and, bit for bit, its gradients") {
  for (const PipelineSetup& setup :
       {PipelineSetup{"gpipe", 1, 2}, PipelineSetup{"1f1b", 1, 2}, PipelineSetup{"zb", 1, 2},
        PipelineSetup{"interleaved", 1, 2, 2}, PipelineSetup{"gpipe", 1, 4}, PipelineSetup{"1f1b", 1, 4},
        PipelineSetup{"zb", 1, 4}, PipelineSetup{"interleaved", 1, 4, 2}, PipelineSetup{"1f1b", 1, 1},
        PipelineSetup{"zb", 1, 1}, PipelineSetup{"interleaved", 1, 1, 2}, PipelineSetup{"interleaved", 1, 2, 4},
        PipelineSetup{"1f1b", 1, 4, 1, 1}, PipelineSetup{"zb", 1, 4, 1, 2}}) {
    expect_as_on_one_rank(setup);
  }
}

TEST_CASE("pipelines beside each other train as one rank, with sharded and with replicated updates") {
  for (const auto sharding : {Sharding::none, Sharding::optimizer}) {
    for (const PipelineSetup& layout : {PipelineSetup{"1f1b", 2, 2}, PipelineSetup{"zb", 2, 2},
                                        PipelineSetup{"interleaved", 2, 2, 2}, PipelineSetup{"zb", 2, 4}}) {
      PipelineSetup setup = layout;
      setup.sharding = sharding;
      expect_as_on_one_rank(setup);
    }
  }
}

TEST_CASE("with fixed bits pipelines keep those of one rank") {
  expect_as_on_one_rank({.schedule = "gpipe", .pipeline = 2, .fixed_bits = true});
  expect_as_on_one_rank({.schedule = "1f1b", .pipeline = 4, .fixed_bits = true});
  expect_as_on_one_rank({.schedule = "1f1b", .data = 2, .pipeline = 2, .micro_batches = 2, .fixed_bits = true});
  expect_as_on_one_rank(
      {.schedule = "1f1b", .data = 2, .pipeline = 2, .micro_batches = 2, .sharding = Sharding::optimizer, .fixed_bits = true});
  const PipelineSetup setup{.schedule = "zb", .pipeline = 2, .fixed_bits = true};
  CHECK_THROWS_WITH(testing::run_ranks(2, [&](const Group& world) { tests::check_pipeline(world, setup); }),
                    ContainsSubstring("use gpipe or 1f1b"));
}

namespace {

// Two ranks make one step of a pipeline.
void run_two_stages(const std::function<void(int rank, std::string& schedule, int& micro_batches)>& choose) {
  testing::run_ranks(2, [&](const Group& world) {
    const ProcessMesh mesh(world, {.pipeline = 2});
    tests::PipelineNet model(model_context(mesh));
    model.initialize();
    std::string schedule;
    int micro_batches = 2;
    choose(world.rank(), schedule, micro_batches);
    DataParallel replicas(model, mesh, {.schedule = schedule});
    Step step = replicas.begin(0, micro_batches);
    step.backward(model, tests::pipeline_batches(0, micro_batches, 4));
    step.finish();
  });
}

}  // namespace

TEST_CASE("schedules that are unknown, do not fit or differ between ranks are refused on all of them") {
  CHECK_NOTHROW(run_two_stages([](int, auto&, auto&) {}));
  CHECK_THROWS_WITH(run_two_stages([](int rank, auto& schedule, auto&) { schedule = rank == 0 ? "gpipe" : "1f1b"; }),
                    ContainsSubstring("rank 0 has schedule = gpipe, rank 1 has schedule = 1f1b"));
  CHECK_THROWS_WITH(run_two_stages([](int rank, auto&, int& micro_batches) { micro_batches += rank; }),
                    ContainsSubstring("rank 0 of the pipeline has 2 micro-batches in this step, rank 1 has 3"));
  CHECK_THROWS_WITH(run_two_stages([](int, auto& schedule, auto&) { schedule = "2f2b"; }), ContainsSubstring("2f2b"));
}

TEST_CASE("a step of a pipeline takes the micro-batches that it was begun with, of the model of its DataParallel") {
  testing::run_ranks(2, [](const Group& world) {
    const ProcessMesh mesh(world, {.pipeline = 2});
    tests::PipelineNet model(model_context(mesh));
    model.initialize();
    DataParallel replicas(model, mesh);
    const auto batches = tests::pipeline_batches(0, 2, 4);
    {
      Step step = replicas.begin(0, 3);
      test::expect_error(
          ErrorCode::invalid_argument, [&] { step.backward(model, batches); },
          "was begun with 3 micro-batches and got 2 batches");
    }
    const tests::PipelineNet other(model_context(mesh));
    Step step = replicas.begin(0, 2);
    test::expect_error(
        ErrorCode::invalid_argument, [&] { step.backward(other, batches); }, "another model");
    step.backward(model, batches);
    step.finish();
    Tape tape;
    test::expect_error(
        ErrorCode::invalid_argument, [&] { model.forward(batches[0]); }, "with 2 stages on 2 ranks can't record on a tape");
  });
}

TEST_CASE("a model that is no list of layers is refused on a mesh with a pipeline axis") {
  CHECK_THROWS_WITH(testing::run_ranks(2,
                                       [](const Group& world) {
                                         const ProcessMesh mesh(world, {.pipeline = 2});
                                         const auto model = std::make_shared<Model>(DType::float32);
                                         model->store().add("weight", {4}, Initializer::constant(1));
                                         model->store().initialize<float>(0);
                                         const DataParallel replicas(*model, mesh);
                                       }),
                    ContainsSubstring("nn::Staged"));
}

TEST_CASE("a stage that throws ends the whole pipeline with its message") {
  for (const std::string& schedule : pipeline_schedule_names()) {
    for (int failing = 0; failing < 4; ++failing) {
      const int chunks = schedule == "interleaved" ? 2 : 1;
      std::atomic<int> ended = 0;
      CAPTURE(schedule, failing);
      const auto fail = [](const tests::PipelineBatch& batch) { require(batch.first_sample != 16, "the fuse has blown"); };
      CHECK_THROWS_WITH(testing::run_ranks(4,
                                           [&](const Group& world) {
                                             const ProcessMesh mesh(world, {.pipeline = 4});
                                             tests::PipelineNet model(model_context(mesh, {.num_chunks = chunks}));
                                             model.initialize();
                                             if (world.rank() == failing) {
                                               model.first.before = model.last.before = fail;
                                               for (std::size_t i = 0; i < model.inner.size(); ++i)
                                                 model.inner[i].before = fail;
                                             }
                                             DataParallel replicas(model, mesh, {.schedule = schedule});
                                             Step step = replicas.begin(0, 4);
                                             try {
                                               step.backward(model, tests::pipeline_batches(0, 4, 8));
                                               step.finish();
                                             } catch (const Error&) {
                                               if (Tape::current() == nullptr) ++ended;
                                               throw;
                                             }
                                           }),
                        ContainsSubstring("the fuse has blown"));
      CHECK(ended == 4);
    }
  }
}
