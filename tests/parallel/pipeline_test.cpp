#include "trireme/parallel/pipeline.hpp"

#include <atomic>

#include "catch.hpp"
#include "pipeline_runs.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::parallel;
using trireme::tests::PipelinePart;
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

// Two ranks make a pipeline of stages that `spoil` has changed.
void start(const std::function<void(int rank, PipelineScheduleOptions&, std::vector<PipelineStage<float>>&)>& spoil) {
  testing::run_ranks(2, [&](const Group& world) {
    const ProcessMesh mesh(world, {.pipeline = 2});
    PipelineScheduleOptions options{.num_ranks = 2, .num_micro_batches = 2};
    std::vector<PipelineStage<float>> stages(1, {.input = {4, tests::pipeline_width}, .output = {4, tests::pipeline_width}});
    if (world.rank() == 0) {
      stages[0].forward = [](const Variable<float>& x, int) { return x; };
    } else {
      stages[0].loss = [](const Variable<float>& x, int) { return mse_loss(x, x.value()); };
    }
    spoil(world.rank(), options, stages);
    const Pipeline<float> pipeline(mesh, make_pipeline_schedule(options), stages);
  });
}

}  // namespace

TEST_CASE("schedules that differ and stages that do not fit are refused on all ranks") {
  CHECK_NOTHROW(start([](int, auto&, auto&) {}));
  CHECK_THROWS_WITH(start([](int rank, auto& options, auto&) { options.name = rank == 0 ? "gpipe" : "1f1b"; }),
                    ContainsSubstring("rank 0 has schedule = gpipe, rank 1 has schedule = 1f1b"));
  CHECK_THROWS_WITH(start([](int, auto& options, auto&) { options.num_ranks = 3; }),
                    ContainsSubstring("one for 3 ranks, the pipeline axis of the mesh has 2"));
  CHECK_THROWS_WITH(start([](int rank, auto&, auto& stages) {
                      stages[0].output = {4, tests::pipeline_width + rank - 1};
                    }),
                    ContainsSubstring("stage 0 gives [4, 11], but stage 1 takes [4, 12]"));
  CHECK_THROWS_WITH(start([](int rank, auto&, auto& stages) {
                      if (rank == 1) stages[0].loss = nullptr;
                    }),
                    ContainsSubstring("stage 1 of 2 must have a loss"));
  CHECK_THROWS_WITH(start([](int, auto&, auto& stages) { stages.resize(2); }),
                    ContainsSubstring("1 stages on each rank, not 2"));
}

TEST_CASE("a stage that throws ends the whole pipeline with its message") {
  for (const std::string& schedule : pipeline_schedule_names()) {
    for (int failing = 0; failing < 4; ++failing) {
      const PipelineSetup setup{.schedule = schedule, .pipeline = 4, .chunks = schedule == "interleaved" ? 2 : 1};
      std::atomic<int> ended = 0;
      CAPTURE(schedule, failing);
      CHECK_THROWS_WITH(testing::run_ranks(4,
                                           [&](const Group& world) {
                                             const ProcessMesh mesh(world, {.pipeline = 4});
                                             const PipelineSchedule actions = setup.make_schedule();
                                             PipelinePart part(actions, world.rank());
                                             part.initialize({.seed = 3});
                                             std::int64_t first = 0;
                                             auto stages = tests::stages_of(part, actions, world.rank(), 8, &first);
                                             const auto fail = [&](auto& function) {
                                               function = [original = function](const Variable<float>& x, int micro_batch) {
                                                 require(micro_batch != 2, "the fuse has blown");
                                                 return original(x, micro_batch);
                                               };
                                             };
                                             if (world.rank() == failing) {
                                               stages[0].forward ? fail(stages[0].forward) : fail(stages[0].loss);
                                             }
                                             Pipeline<float> pipeline(mesh, actions, std::move(stages));
                                             DataParallel replicas(part, mesh);
                                             Step step = replicas.begin(0, setup.micro_batches);
                                             try {
                                               pipeline.run(step, 0, 8);
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
