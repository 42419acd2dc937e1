#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "trainer/resumed_run.hpp"
#include "trainer/settings.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/core/stopwatch.hpp"
#include "trireme/optim/moving_average.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trainer/fit.hpp"
#include "trireme/trainer/run.hpp"

using namespace trireme;
using namespace trireme::test;
using testing::run_ranks;
using trainer::Options;
using trainer::Run;

namespace {

struct Trained {
  std::vector<float> values;
  std::vector<double> validations;
  std::int64_t first_step = -1;
  std::int64_t done = 0;
};

// With dropout, shuffling, validation with a patience, and an average of the weights. Ends after `last` steps, as by a signal.
Trained train(const Group& world, Options options, std::optional<std::int64_t> last = {}) {
  Run run(world, options);
  PointNet net(run.context());
  optim::AdamW<Float32> optimizer(net, {.learning_rate = 0.01});
  run.add(net, optimizer);
  optim::ExponentialMovingAverage<Float32> average(net, {.decay = 0.9});
  run.keep([&](State& state) { average.add_to(state); });
  Trained trained;
  trainer::Validations validations(run, net,
                                   {.validate =
                                        [&] {
                                          trained.validations.push_back(run.evaluate(net, TestPoints()));
                                          return trained.validations.back();
                                        },
                                    .validate_every = Steps{4},
                                    .patience = 100});
  const PointLoader loader(run.batch());
  for (auto& step : run.steps(loader)) {
    if (trained.first_step < 0) trained.first_step = step.number();
    for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
    step.update(optimizer);
    average.update();
    validations.after_update();
    if (last && run.done() == *last) run.stop();
  }
  trained.done = run.done();
  average.swap();
  trained.values = values_of(net);
  return trained;
}

}  // namespace

TEST_CASE("resumed after each step: the same bits as uninterrupted") {
  const Silence silence;
  for (const int ranks : {1, 2, 4}) {
    for (const std::int64_t micro_batches : {1, 3}) {
      run_ranks(ranks, [&](const Group& world) {
        const std::int64_t micro_batch_size = 12 / world.size() / micro_batches;
        const Trained whole = train(world, {.until = Steps{30}, .batch_size = 12, .micro_batch_size = micro_batch_size});
        for (std::int64_t stop = 1; stop < 30; ++stop) {
          static std::optional<RunFolder> folder;
          world.barrier();
          if (world.rank() == 0) folder.emplace();
          world.barrier();
          const Options options = options_in(*folder, micro_batch_size);
          const Trained first = train(world, options, stop);
          expect(first.done == stop, "stopped after step {}, wanted {}", first.done, stop);
          const Trained second = train(world, options);
          expect(second.first_step == stop && second.done == 30, "went on with step {}", second.first_step);
          expect(second.values == whole.values, "the values of an uninterrupted run, stopped after step {}", stop);
          std::vector<double> validations = first.validations;
          validations.insert(validations.end(), second.validations.begin(), second.validations.end());
          expect(validations == whole.validations, "the validations of an uninterrupted run, stopped after step {}", stop);
        }
      });
    }
  }
}

TEST_CASE("resumed by other ranks: with fixed bits the same bits, and each sample once") {
  const Silence silence;
  const parallel::FixedBits fixed{.micro_batches = 4};
  std::vector<float> whole;
  run_ranks(1, [&](const Group& world) {
    whole = train(world, {.until = Steps{30}, .batch_size = 12, .micro_batch_size = 3, .parallel = {.sum = fixed}}).values;
  });
  for (const std::int64_t stop : {1, 7, 29}) {
    for (const auto& [before, after] : {std::pair{4, 1}, {1, 2}, {2, 4}}) {
      const RunFolder folder;
      const Options options = options_in(folder, 3, fixed);
      run_ranks(before, [&](const Group& world) { train(world, options, stop); });
      run_ranks(after, [&](const Group& world) {
        expect(train(world, options).values == whole, "{} ranks after {}, from step {}", after, before, stop);
      });
    }
  }
}

TEST_CASE("resumed around the steps where the batch grows, by other ranks: with fixed bits the same bits") {
  const Silence silence;
  const auto grown = [](Options options) {
    options.batch_size_from_step = {{8, 24}, {20, 48}};
    return options;
  };
  const parallel::FixedBits fixed{.micro_batches = 4};
  std::vector<float> whole;
  run_ranks(1, [&](const Group& world) {
    whole = train(world, grown({.until = Steps{30}, .batch_size = 12, .parallel = {.sum = fixed}})).values;
  });
  for (const std::int64_t stop : {7, 8, 9, 20}) {
    const RunFolder folder;
    const Options options = grown(options_in(folder, 0, fixed));
    run_ranks(4, [&](const Group& world) { train(world, options, stop); });
    run_ranks(1, [&](const Group& world) {
      Options other = options;
      other.batch_size_from_step.pop_back();
      expect_error(
          ErrorCode::invalid_argument, [&] { train(world, other); }, "made with another batch_size_from_step", "wanted 24@8",
          "had 24@8,48@20");
    });
    run_ranks(
        2, [&](const Group& world) { expect(train(world, options).values == whole, "2 ranks after 4, from step {}", stop); });
  }
}

TEST_CASE("a run of four ranks goes on with three: the same curve up to rounding") {
  const Silence silence;
  const RunFolder folder;
  Options options = options_in(folder, 0);
  std::vector<double> whole;
  run_ranks(4, [&](const Group& world) {
    const Trained trained = train(world, {.until = Steps{30}, .batch_size = 12});
    if (world.rank() == 0) whole = trained.validations;
  });
  std::vector<double> parts;
  const auto keep = [&parts](const Group& world, const Trained& trained) {
    if (world.rank() == 0) parts.insert(parts.end(), trained.validations.begin(), trained.validations.end());
  };
  run_ranks(4, [&](const Group& world) { keep(world, train(world, options, 13)); });
  run_ranks(3, [&](const Group& world) { keep(world, train(world, options)); });
  REQUIRE(parts.size() == whole.size());
  for (std::size_t index = 0; index < whole.size(); ++index) CHECK(std::abs(parts[index] - whole[index]) < 1e-3);
}

TEST_CASE("a checkpoint of other settings is refused before anything of it is loaded, with both values") {
  const Silence silence;
  const RunFolder folder;
  run_ranks(2, [&](const Group& world) {
    Options options = options_in(folder, 0);
    train(world, options, 3);
    Options other = options;
    other.batch_size = 24;
    expect_error(
        ErrorCode::invalid_argument, [&] { train(world, other); }, "made with another batch_size", "24", "12");
    other = options;
    other.seed = 2;
    expect_error(
        ErrorCode::invalid_argument, [&] { train(world, other); }, "made with another seed");
    const auto with_width = [&](const char* width) {
      Run run(world, options);
      run.describe("width", width);
      PointNet net(run.context());
      optim::AdamW<Float32> optimizer(net);
      run.add(net, optimizer);
      run.load();
    };
    expect_error(
        ErrorCode::invalid_argument, [&] { with_width("24"); }, "made with another width", "not there");
    expect_error(
        ErrorCode::rank_mismatch, [&] { with_width(world.rank() == 0 ? "24" : "25"); }, "width");
    other = options;
    other.until = Steps{40};  // a longer run is a wish, not a mistake
    expect(train(world, other).done == 40, "a run that was made longer");
    other.resume = "17";
    expect_error(
        ErrorCode::invalid_argument, [&] { train(world, other); }, "resume 17: there is no such checkpoint");
    other.resume = "yesterday";
    expect_error(
        ErrorCode::invalid_argument, [&] { train(world, other); }, "neither auto, none nor a step");
    world.barrier();
    if (world.rank() == 0) setenv("TRIREME_RESUME", "17", 1);
    expect_error(
        ErrorCode::invalid_argument, [&] { train(world, other); }, "TRIREME_RESUME 17: there is no such checkpoint");
    if (world.rank() == 0) unsetenv("TRIREME_RESUME");
    other.resume = "none";
    expect(train(world, other, 2).first_step == 0, "a run that begins anew");
  });
}

TEST_CASE("a checkpoint that is older than a setting has its default") {
  const Silence silence;
  const RunFolder folder;
  run_ranks(2, [&](const Group& world) {
    Options options = options_in(folder, 0);
    options.until = Steps{3};
    const auto train_with = [&](const std::function<void(Run&)>& describe) {
      Run run(world, options);
      describe(run);
      PointNet net(run.context());
      optim::AdamW<Float32> optimizer(net);
      run.add(net, optimizer);
      const PointLoader loader(run.batch());
      for (auto& step : run.steps(loader)) {
        for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
        step.update(optimizer);
      }
      return run.done();
    };
    const auto with_packing = [&](const char* packing, trainer::Differs differs) {
      return train_with([&](Run& run) { run.describe("packing", packing, differs, "off"); });
    };
    train_with([](Run&) {});
    options.until = Steps{4};
    expect_error(
        ErrorCode::invalid_argument, [&] { with_packing("on", trainer::Differs::refused); }, "made with another packing",
        "wanted on", "had off, the default of a setting that it lacks");
    expect(with_packing("off", trainer::Differs::refused) == 4, "a run at the default goes on");
    options.until = Steps{5};
    expect_error(
        ErrorCode::invalid_argument, [&] { with_packing("on", trainer::Differs::refused); }, "made with another packing",
        "wanted on", "had off;");
    expect(with_packing("on", trainer::Differs::told) == 5, "what may differ is told");
  });
}

TEST_CASE("a setting of every run that a checkpoint lacks had its default") {
  const Options options{.batch_size = 12, .warmup = 7};
  checkpoint::Configuration now;
  for (const auto& [name, value] : trainer::settings_of(options)) now[name] = value;
  checkpoint::Configuration before = now;
  before.erase("clip_norm");
  CHECK(trainer::compare(before, now, {}, 3).empty());
  before.erase("warmup");
  const auto notes = trainer::compare(before, now, {}, 3);
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes.front(), ContainsSubstring("warmup was 0, the default of a setting that it lacks in the checkpoint, is 7"));
  before.erase("batch_size");
  CHECK_THROWS_WITH(trainer::compare(before, now, {}, 3), ContainsSubstring("made with another batch_size; name batch_size"));
}

TEST_CASE("a signal saves and stops, on all ranks after the same step") {
  const Silence silence;
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGPIPE}) {
    const RunFolder folder;
    std::vector<float> whole;
    run_ranks(2, [&](const Group& world) {
      const auto run_once = [&](bool signalled, bool checkpoints) {
        Options options = options_in(folder, 0);
        options.process.signals = true;
        if (!checkpoints) options.checkpoints = {};
        Run run(world, options);
        PointNet net(run.context());
        optim::AdamW<Float32> optimizer(net);
        run.add(net, optimizer);
        const PointLoader loader(run.batch());
        for (auto& step : run.steps(loader)) {
          for (const auto& batch : step.batches()) {
            step.backward(batch, [&] {
              if (signalled && step.number() == 4 && world.rank() == 1) std::raise(signal);
              return net.loss(net.forward(batch), batch);
            });
          }
          step.update(optimizer);
        }
        if (signalled) expect(run.done() == 5 && run.stopped(), "the step of the signal is the last: {}", run.done());
        return values_of(net);
      };
      const auto uninterrupted = run_once(false, false);
      run_once(true, true);
      expect(run_once(false, true) == uninterrupted, "the run goes on where it was stopped");
    });
  }
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGPIPE}) std::signal(signal, SIG_DFL);
}

TEST_CASE("the time of a run is counted over all its starts") {
  const Silence silence;
  const RunFolder folder;
  run_ranks(2, [&](const Group& world) {
    struct Start {
      std::int64_t steps = 0;
      double seconds = 0;
      bool stopped = false;
    };
    const auto start = [&](double until, std::int64_t last) {
      Options options = options_in(folder, 0);
      options.until = Seconds{until};
      Run run(world, options);
      PointNet net(run.context());
      optim::AdamW<Float32> optimizer(net);
      run.add(net, optimizer);
      const PointLoader loader(run.batch());
      Start done;
      const Stopwatch stopwatch;
      for (auto& step : run.steps(loader)) {
        for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
        step.update(optimizer);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        if (++done.steps == last) run.stop();
      }
      done.seconds = stopwatch.seconds();
      done.stopped = run.stopped();
      return done;
    };
    const Start first = start(0.6, 60);  // 0.3 s or more
    expect(first.steps <= 60, "a start of {} steps", first.steps);
    const Start second = start(0.6, -1);
    expect(!second.stopped && second.seconds < 0.5, "the second start has what the first has left: {} s", second.seconds);
    const Start third = start(0.6, -1);
    expect(third.steps == 0 && !third.stopped, "a third has no time: {} steps", third.steps);
    expect(start(0.7, -1).steps > 0, "unless it is given more");
  });
}

TEST_CASE("a run that is not asked to leaves signals alone") {
  const Silence silence;
  const RunFolder folder;
  run_ranks(1, [&](const Group& world) {
    struct sigaction before {};
    struct sigaction after {};
    sigaction(SIGTERM, nullptr, &before);
    const Run run(world, options_in(folder, 0));
    sigaction(SIGTERM, nullptr, &after);
    expect(before.sa_handler == after.sa_handler, "the process's own way to end");
  });
}

TEST_CASE("checkpoints come when they are due, and those that fail end no run but the last") {
  const Silence silence;
  const RunFolder folder;
  run_ranks(2, [&](const Group& world) {
    Options options = options_in(folder, 0);
    options.checkpoint_every = Steps{10};
    options.checkpoints.keep = 5;
    options.until = Steps{25};
    train(world, options);
    expect(checkpoint::committed_steps(folder.path) == std::vector<std::int64_t>{10, 20, 25},
           "after every tenth, and at the end");
  });
  const RunFolder by_epochs;
  run_ranks(1, [&](const Group& world) {
    Options options = options_in(by_epochs, 0);
    options.checkpoint_every = Epochs{2};
    options.checkpoints.keep = 5;
    options.until = Steps{25};
    train(world, options);
    expect(checkpoint::committed_steps(by_epochs.path) == std::vector<std::int64_t>{10, 20, 25}, "after every second epoch");
  });
  CHECK_THROWS_AS(run_ranks(2, [](const Group& world) { train(world, {.checkpoints = {.directory = "/proc/no"}}); }), Error);
}

TEST_CASE("two models in one run: a step within the loss of another, resumed") {
  const Silence silence;
  const auto train_two = [](const Group& world, const Options& options, std::optional<std::int64_t> last) {
    Run run(world, options);
    PointNet outer(run.context());
    PointNet inner(run.context());
    optim::AdamW<Float32> of_outer(outer);
    optim::AdamW<Float32> of_inner(inner, {.learning_rate = 0.01});
    run.add(outer, of_outer, "outer.");
    run.add(inner, of_inner, "inner.");
    const PointLoader loader(run.batch());
    for (auto& step : run.steps(loader)) {
      for (const auto& batch : step.batches()) {
        step.backward(batch, [&] {
          parallel::Step nested = run.begin(inner);
          nested.backward(batch, [&] { return inner.loss(inner.forward(batch), batch); });
          nested.update(of_inner, run.update_options(of_inner));
          return outer.loss(add(outer.forward(batch), inner.forward(batch)), batch);
        });
      }
      step.update(of_outer);
      if (last && run.done() == *last) run.stop();
    }
    std::vector<float> values = values_of(outer);
    const std::vector<float> more = values_of(inner);
    values.insert(values.end(), more.begin(), more.end());
    return values;
  };
  for (const int ranks : {1, 2}) {
    const RunFolder folder;
    run_ranks(ranks, [&](const Group& world) {
      const auto whole = train_two(world, {.until = Steps{30}, .batch_size = 12}, {});
      train_two(world, options_in(folder, 0), 11);
      expect(train_two(world, options_in(folder, 0), {}) == whole, "the same bits as uninterrupted");
    });
  }
}

TEST_CASE("a run that only evaluates takes the model of a checkpoint, and no optimizer") {
  const Silence silence;
  const RunFolder folder;
  std::vector<float> trained;
  run_ranks(2, [&](const Group& world) {
    Run run(world, options_in(folder, 0));
    PointNet net(run.context());
    optim::AdamW<Float32> optimizer(net);
    run.add(net, optimizer);
    trainer::Validations none(run, net, {});
    const PointLoader loader(run.batch());
    for (auto& step : run.steps(loader)) {
      for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
      step.update(optimizer);
    }
    if (world.rank() == 0) trained = values_of(net);
  });
  run_ranks(1, [&](const Group& world) {
    Options options = options_in(folder, 0);
    options.batch_size = 7;  // of no importance here
    options.seed = 3;
    Run run(world, options);
    PointNet net(run.context());
    run.add(net);
    expect(std::isfinite(run.evaluate(net, TestPoints()).value()), "a loss");
    expect(values_of(net) == trained, "the values of the checkpoint");
  });
}
