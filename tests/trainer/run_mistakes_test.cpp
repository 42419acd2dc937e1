#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "trainer/run_phase.hpp"
#include "trainer/small_run.hpp"
#include "trireme/comm/launch/launch.hpp"
#include "trireme/core/log.hpp"
#include "trireme/optim/learning_rate.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trainer/fit.hpp"
#include "trireme/trainer/run.hpp"

// Common mistakes of users with a run: each gives an error in time, or works.

using namespace trireme;
using namespace trireme::test;
using testing::run_ranks;
using trainer::Options;
using trainer::Run;

namespace {

struct Silence {
  Silence() {
    set_log_sink([](Severity, std::string_view) {});
  }
  ~Silence() { set_log_sink({}); }
};

Options options_in(const RunFolder& folder) {
  return {.until = Steps{5},
          .batch_size = 12,
          .checkpoints = {.directory = folder.path / "run"},
          .checkpoint_every = Steps{1'000'000}};
}

// A run of one model; `before` is called before its loop, and `after_update` in it.
template <typename Before, typename AfterUpdate>
void train(const Group& world, const Options& options, const Before& before, const AfterUpdate& after_update) {
  Run run(world, options);
  PointNet net(run.context());
  optim::AdamW<Float32> optimizer(net);
  run.add(net, optimizer);
  before(run, net);
  const PointLoader loader(run.batch());
  for (auto& step : run.steps(loader)) {
    for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
    step.update(optimizer);
    after_update(run, net);
  }
}
constexpr auto nothing = [](Run&, PointNet&) {};

}  // namespace

TEST_CASE("finish() before update(), to look at the norm") {
  const Silence silence;
  run_ranks(2, [](const Group& world) {
    Run run(world, {.until = Steps{9}, .batch_size = 12});
    PointNet net(run.context());
    optim::AdamW<Float32> optimizer(net);
    run.add(net, optimizer);
    const PointLoader loader(run.batch());
    for (auto& step : run.steps(loader)) {
      for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
      if (world.rank() == 1 && step.number() == 3) run.ask({.stop = true});
      expect(step.finish().gradient_norm > 0, "a norm");
      step.update(optimizer);
    }
    expect(run.done() == 4, "what a rank has asked for travels with finish() too: {} steps", run.done());
  });
}

TEST_CASE("a call in the wrong order names the phase of the run") {
  const Silence silence;
  run_ranks(1, [](const Group& world) {
    Run run(world, {.until = Steps{1}, .batch_size = 12});
    PointNet net(run.context());
    PointNet other(run.context());
    optim::AdamW<Float32> optimizer(net);
    const auto refused = [](const auto& call, const std::string& rule, const std::string& phase) {
      expect_error(ErrorCode::invalid_argument, call, (rule + "; the run is " + phase).c_str());
    };
    const auto due = [&] { static_cast<void>(run.due(Epochs{1})); };
    const auto add = [&] { run.add(other, "other."); };
    const auto evaluate = [&] { run.evaluate(net, TestPoints()); };
    const std::string of_due = "due() is asked in the loop, after step.update(optimizer)";
    const std::string of_add = "models are added to a run before its loop, and before what loads its checkpoint";
    refused(due, of_due, "being prepared");
    run.add(net, optimizer);
    run.load();
    refused(add, of_add, "loaded, before its loop");
    const PointLoader loader(run.batch());
    for (auto& step : run.steps(loader)) {
      for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
      refused(evaluate, "evaluate after it", "in step 0, before its update");
      step.finish();
      refused(due, of_due, "in step 0, after its finish() and before its update");
      step.update(optimizer);
      refused([&] { step.update(optimizer); }, "update() of step 0 after its end: a step has one",
              "in step 0, after its update");
      evaluate();
    }
    refused([&] { run.describe("name", "value"); }, "before what loads its checkpoint", "after its loop");
    refused(
        [&] {
          for (auto& step : run.steps(loader)) static_cast<void>(step);
        },
        "its steps() are gone through once", "after its loop");
    evaluate();
  });
  trainer::RunPhase phase;
  CHECK_THROWS_AS(phase.enter(trainer::Phase::in_step), Error);
  phase.enter(trainer::Phase::loaded);
  CHECK(phase.now() == trainer::Phase::loaded);
}

TEST_CASE("a learning rate that is set after run.add counts") {
  const Silence silence;
  run_ranks(1, [](const Group& world) {
    Run run(world, {.until = Steps{2}, .batch_size = 12});
    PointNet net(run.context());
    optim::AdamW<Float32> optimizer(net);
    run.add(net, optimizer);
    optimizer.set_learning_rate(0.5);
    const PointLoader loader(run.batch());
    for (auto& step : run.steps(loader)) {
      for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
      step.update(optimizer);
      if (step.number() == 0)
        expect(optimizer.learning_rate() == 0.5, "the rate of the first step: {}", optimizer.learning_rate());
    }
  });
}

TEST_CASE("names that clash in a checkpoint are told before the first step") {
  const Silence silence;
  const RunFolder folder;
  run_ranks(1, [&](const Group& world) {
    std::int64_t steps = 0;
    std::int64_t value = 0;
    expect_error(
        ErrorCode::invalid_argument,
        [&] {
          train(
              world, options_in(folder),
              [&](Run& run, PointNet&) {
                for (int time = 0; time < 2; ++time) run.keep([&](State& state) { state.add("mine", &value); });
              },
              [&](Run&, PointNet&) { ++steps; });
        },
        "mine");
    expect(steps == 0, "no step was lost");
  });
}

TEST_CASE("a program's setting has a name of its own, loss too") {
  const Silence silence;
  const RunFolder folder;
  run_ranks(1, [&](const Group& world) {
    const auto with_loss = [](Run& run, PointNet&) { run.describe("loss", "mse"); };
    train(world, options_in(folder), with_loss, nothing);
    Options longer = options_in(folder);
    longer.until = Steps{7};
    train(world, longer, with_loss, nothing);
    for (const char* name : {"seed", "batch_size", "loss"}) {
      expect_error(
          ErrorCode::invalid_argument,
          [&] {
            train(
                world, longer,
                [&](Run& run, PointNet& net) {
                  with_loss(run, net);
                  run.describe(name, "3");
                },
                nothing);
          },
          "give it another name");
    }
  });
}

TEST_CASE("a model that is only looked at, before or after the one that is trained") {
  const Silence silence;
  for (const bool teacher_first : {true, false}) {
    const RunFolder folder;
    run_ranks(2, [&](const Group& world) {
      const auto train_two = [&](const Options& options, std::optional<std::int64_t> last) {
        Run run(world, options);
        PointNet teacher(run.context());
        PointNet net(run.context());
        optim::AdamW<Float32> optimizer(net);
        if (teacher_first) run.add(teacher, "teacher.");
        run.add(net, optimizer);
        if (!teacher_first) run.add(teacher, "teacher.");
        const std::vector<float> before = values_of(teacher);
        const PointLoader loader(run.batch());
        for (auto& step : run.steps(loader)) {
          for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
          step.update(optimizer);
          if (last && run.done() == *last) run.stop();
        }
        expect(values_of(teacher) == before, "the teacher learns nothing");
        return values_of(net);
      };
      const auto whole = train_two({.until = Steps{5}, .batch_size = 12}, {});
      train_two(options_in(folder), 2);
      Options other = options_in(folder);
      other.seed = 2;
      expect_error(
          ErrorCode::invalid_argument, [&] { train_two(other, {}); }, "made with another seed");
      expect(train_two(options_in(folder), {}) == whole, "the same bits as uninterrupted");
    });
  }
}

TEST_CASE("results that are reported after the loop") {
  const Silence silence;
  const RunFolder folder;
  std::filesystem::create_directories(folder.path);
  run_ranks(1, [&](const Group& world) {
    Run run(world, {.until = Steps{2}, .batch_size = 12, .metrics = folder.path / "metrics.jsonl"});
    const PointLoader loader(run.batch());
    for (const auto& step : run.steps(loader)) static_cast<void>(step);
    run.report({{"test_accuracy", 0.5}});
  });
  std::vector<std::string> lines;
  std::ifstream file(folder.path / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0], Catch::Matchers::StartsWith("{\"step\":1,\"samples\":12"));
  CHECK_THAT(lines[1],
             Catch::Matchers::StartsWith("{\"step\":2,\"samples\":12") && Catch::Matchers::EndsWith(",\"test_accuracy\":0.5}"));
}

TEST_CASE("who watches a run does not end it") {
  const RunFolder folder;
  struct Broken : monitor::Sink {
    explicit Broken(int& with_calls) : calls(with_calls) {}
    void write(const monitor::Snapshot&) override {
      if (++calls % 2 == 1) throw std::runtime_error("no plot today");
    }
    void note(std::string_view) override { throw 3; }
    int& calls;
  };
  std::string told;
  set_log_sink([&told](Severity, std::string_view line) { told += std::string(line) + "\n"; });
  int calls = 0;
  run_ranks(2, [&](const Group& world) {
    Options options = options_in(folder);
    options.metrics = "/dev/full";
    train(
        world, options, [&](Run& run, PointNet&) { run.add_sink(std::make_unique<Broken>(calls)); },
        [&](Run& run, PointNet&) {
          run.report({{"extra", 1}});
        });
  });
  set_log_sink({});
  CHECK(calls == 5);
  CHECK(checkpoint::committed_steps(folder.path / "run") == std::vector<std::int64_t>{5});
  const auto count = [&told](const std::string& part) {
    int times = 0;
    for (std::size_t at = told.find(part); at != told.npos; at = told.find(part, at + 1)) ++times;
    return times;
  };
  INFO(told);
  CHECK(count("note: metrics are lost, and training goes on: ") == 2);
  CHECK(count("/dev/full") == 1);
  CHECK(count("checkpoint of step 5 saved") == 1);
}

TEST_CASE("numbers of a run that are too large, or none") {
  const Silence silence;
  run_ranks(2, [](const Group& world) {
    const auto check = [&world](const Options& options, const char* text) {
      expect_error(
          ErrorCode::invalid_argument, [&] { const Run run(world, options); }, text);
    };
    const auto infinite = std::numeric_limits<double>::infinity();
    check({.batch_size = std::numeric_limits<std::int64_t>::max()}, "batch_size lies in [1, 2147483647]");
    check({.batch_size = 12, .micro_batch_size = 13}, "micro_batch_size");
    check({.batch_size = 12, .chunks = 1 << 30}, "chunks");
    check({.batch_size = 12, .mesh = {.pipeline = 65536, .tensor = 65536}}, "needs a multiple of 4294967296 ranks");
    check({.batch_size = 12, .mesh = {.data = 65536, .pipeline = 65536, .tensor = 65536}}, "does not fit 2 ranks");
    check({.batch_size = 12, .base_learning_rate = 0}, "learning rate is above 0");
    check({.batch_size = 12, .base_learning_rate = infinite}, "learning rate is above 0");
    check({.batch_size = 12, .learning_rate = optim::constant(1), .base_learning_rate = 1}, "a function of the step");
    check({.batch_size = 12, .clip_norm = std::nan("")}, "clip_norm");
  });
  CHECK(launch(BackendKind::thread, {.ranks = 1'000'000'000}, [](const Group&) { return 0; }) == 2);
  CHECK(launch(BackendKind::thread, {.ranks = 1, .threads_per_rank = 1'000'000}, [](const Group&) { return 0; }) == 2);
}

TEST_CASE("a wish to go on that can't be met") {
  const Silence silence;
  const RunFolder folder;
  run_ranks(2, [&](const Group& world) {
    expect_error(
        ErrorCode::invalid_argument, [&] { const Run run(world, {.resume = "5"}); }, "needs the directory");
    expect_error(
        ErrorCode::invalid_argument,
        [&] {
          Run run(world, options_in(folder));
          PointNet net(run.context());
          run.add(net);
          run.evaluate(net, TestPoints());
        },
        "no checkpoint whose model could be evaluated");
    expect_error(
        ErrorCode::invalid_argument, [&] { const Run run(world, {.clip_norm = -1}); }, "clip_norm");
    expect_error(
        ErrorCode::invalid_argument, [&] { const Run run(world, {.clip_value = -1}); }, "clip_value");
  });
  CHECK(!std::filesystem::exists(folder.path / "run"));
}

TEST_CASE("callbacks are called in their order, each") {
  const Silence silence;
  run_ranks(1, [](const Group& world) {
    Run run(world, {.until = Steps{2}, .batch_size = 12});
    std::string called;
    for (const char name : {'a', 'b'}) {
      run.after_step([&called, name](const trainer::StepReport&, StepRequests&) { called += name; });
    }
    const PointLoader loader(run.batch());
    for (const auto& step : run.steps(loader)) static_cast<void>(step);
    expect(called == "abab", "{}", called);
  });
}

TEST_CASE("ranks that validate differently go the same way") {
  const Silence silence;
  run_ranks(2, [](const Group& world) {
    Run run(world, {.until = Steps{20}, .batch_size = 12});
    PointNet net(run.context());
    optim::AdamW<Float32> optimizer(net);
    const PointLoader loader(run.batch());
    double value = world.rank();
    const trainer::FitReport report = trainer::fit(
        run, net, optimizer, loader,
        {.validate = [&] { return value += world.rank() == 0 ? 1 : -1; }, .validate_every = Steps{1}, .patience = 2});
    expect(run.done() == 3 && report.best == 1, "rank 0's numbers count: {} steps", run.done());
  });
}
