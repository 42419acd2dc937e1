#include "trireme/trainer/run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "trainer/small_run.hpp"
#include "trireme/core/log.hpp"
#include "trireme/monitor/registry.hpp"
#include "trireme/optim/learning_rate.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/hooks/compression.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::test;
using testing::run_ranks;
using trainer::Options;
using trainer::Run;

namespace {

// Lines of the log, which a run's notes go to.
class Log {
 public:
  Log() {
    set_log_sink([this](Severity, std::string_view line) {
      const std::lock_guard lock(mutex_);
      text_ += std::string(line) + "\n";
    });
  }
  ~Log() { set_log_sink({}); }
  bool has(const std::string& part) const { return text_.find(part) != std::string::npos; }
  const std::string& text() const { return text_; }

 private:
  std::mutex mutex_;
  std::string text_;
};

struct Kept : monitor::Sink {
  explicit Kept(std::vector<monitor::Snapshot>& to) : snapshots(to) {}
  void write(const monitor::Snapshot& snapshot) override { snapshots.push_back(snapshot); }
  std::vector<monitor::Snapshot>& snapshots;
};

// Tells the same of each batch that it has loaded; each rank has met two bad samples.
struct ReportingLoader : PointLoader {
  using PointLoader::PointLoader;

  PointBatch load(std::int64_t step, std::int64_t micro_batch = 0) const {
    ++*loads;
    return PointLoader::load(step, micro_batch);
  }
  data::LoaderReport report() const {
    const auto count = static_cast<double>(*loads);
    return {.batches = *loads,
            .loading_seconds = 2 * count,
            .ready_batches = 3,
            .ready_bytes = 300,
            .decoding_seconds = 0.5 * count,
            .num_bad_samples = std::min<std::int64_t>(2, *loads)};
  }
  std::shared_ptr<std::int64_t> loads = std::make_shared<std::int64_t>(0);
};

std::vector<float> trained_by_run(const Group& world, const Options& options) {
  Run run(world, options);
  PointNet net(run.context());
  optim::AdamW<Float32> optimizer(net);
  run.add(net, optimizer);
  const PointLoader loader(run.batch());
  for (auto& step : run.steps(loader)) {
    for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
    step.update(optimizer);
  }
  return values_of(net);
}

// The loop of the pages in docs, with the defaults of Options.
std::vector<float> trained_by_hand(const Group& world, std::int64_t batch_size, std::int64_t micro_batch_size,
                                   std::int64_t steps, double clip_value = 0) {
  const ProcessMesh mesh(world);
  PointNet net(parallel::model_context(mesh, {.batch_size = batch_size}));
  net.initialize();
  optim::AdamW<Float32> optimizer(net);
  parallel::DataParallel replicas(net, mesh);
  const PointLoader loader(
      {.batch_size = batch_size, .micro_batch_size = micro_batch_size, .index = world.rank(), .count = world.size()});
  const auto rate = optim::warmup_cosine({.base = 1e-3, .total = steps});
  for (std::int64_t number = 0; number < steps; ++number) {
    parallel::Step step = replicas.begin(number, static_cast<int>(loader.num_micro_batches()));
    for (std::int64_t micro = 0; micro < loader.num_micro_batches(); ++micro) {
      const PointBatch batch = loader.load(number, micro);
      step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
    }
    step.update(optimizer, {.learning_rate = rate(number), .clip_norm = 1, .clip_value = clip_value});
  }
  return values_of(net);
}

}  // namespace

TEST_CASE("a run and the loop by hand: the same bits") {
  const Log log;
  for (const int ranks : {1, 2}) {
    run_ranks(ranks, [](const Group& world) {
      expect(trained_by_run(world, {.until = Steps{20}, .batch_size = 12}) == trained_by_hand(world, 12, 0, 20),
             "equal values");
      expect(trained_by_run(world, {.until = Epochs{2}, .batch_size = 12, .micro_batch_size = 3}) ==
                 trained_by_hand(world, 12, 3, 10),
             "equal values with micro-batches");
      const auto clipped = trained_by_run(world, {.until = Steps{20}, .batch_size = 12, .clip_value = 1e-3});
      expect(clipped == trained_by_hand(world, 12, 0, 20, 1e-3), "equal values with elements that are clipped");
      expect(clipped != trained_by_hand(world, 12, 0, 20), "elements that are clipped");
    });
  }
}

TEST_CASE("the learning rate of a run: said first, warm-up with a time too, and in place of the optimizer's") {
  const Log log;
  run_ranks(2, [](const Group& world) {
    const auto rates = [&world](const Options& options, double own_rate) {
      Run run(world, options);
      PointNet net(run.context());
      optim::AdamW<Float32> optimizer(net, {.learning_rate = own_rate});
      run.add(net, optimizer);
      const PointLoader loader(run.batch());
      std::vector<double> all;
      for (auto& step : run.steps(loader)) {
        all.push_back(*run.update_options(optimizer).learning_rate);
        for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
        step.update(optimizer);
        if (step.number() == 5) run.stop();
      }
      return all;
    };
    const std::vector<double> rising{0.25, 0.5, 0.75, 1, 1, 1};
    expect(rates({.until = Seconds{3600}, .batch_size = 12, .warmup = 4}, 1) == rising, "a warm-up, then the rate");
    expect(rates({.until = Seconds{3600}, .batch_size = 12, .base_learning_rate = 1, .warmup = 4}, 0.001) == rising,
           "in place of the optimizer's");
    expect(rates({.until = Seconds{3600}, .batch_size = 12}, 1) == std::vector<double>(6, 1.0), "without a warm-up");
    const Options options{.until = Steps{6}, .batch_size = 12, .base_learning_rate = 0.5, .warmup = 2, .clip_norm = 0};
    expect(rates(options, 0.001) == rates({.until = Steps{6}, .batch_size = 12, .warmup = 2, .clip_norm = 0}, 0.5), "the same");
    Run two(world, options);
    PointNet net(two.context());
    PointNet other(two.context());
    optim::AdamW<Float32> of_net(net);
    optim::AdamW<Float32> of_other(other);
    two.add(net, of_net);
    expect_error(
        ErrorCode::invalid_argument, [&] { two.add(other, of_other, "other."); },
        "a run with several models takes no learning rate");
  });
  for (const char* line :
       {"steps of 12 samples for 3600 s, learning rate 1 after a warm-up of 4 steps; the norm of the gradients "
        "is clipped to 1\n",
        "6 steps of 12 samples, learning rate 0.5 after a warm-up of 2 steps, then half a cosine down to 0 at "
        "step 6; the norm of the gradients is not clipped\n"}) {
    INFO(line << log.text());
    CHECK(log.has(line));
  }
}

TEST_CASE("a batch that grows: the learning rate as asked, the samples of an epoch, and what the loader must know") {
  const Log log;
  run_ranks(2, [](const Group& world) {
    const auto run_with = [&world](trainer::RateScaling scaling, const Amount& until) {
      Run run(world, {.until = until,
                      .batch_size = 10,
                      .batch_size_from_step = {{2, 40}, {4, 90}},
                      .learning_rate = optim::constant(1),
                      .scale_learning_rate = scaling});
      PointNet net(run.context());
      optim::AdamW<Float32> optimizer(net);
      run.add(net, optimizer);
      const PointLoader loader(run.batch());
      std::vector<double> rates, samples;
      std::vector<std::int64_t> ends_of_epochs;
      for (auto& step : run.steps(loader)) {
        rates.push_back(*run.update_options(optimizer).learning_rate);
        for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
        step.update(optimizer);
        if (run.due(Epochs{1})) ends_of_epochs.push_back(run.done());
      }
      return std::pair(rates, ends_of_epochs);
    };
    using enum trainer::RateScaling;
    const auto [rates, ends] = run_with(none, Epochs{4.5});  // 10 + 10 + 40 + 40 + 90 + 90 samples of 60 an epoch
    expect(rates == std::vector<double>(6, 1.0), "the rate as it is");
    expect(ends == std::vector<std::int64_t>{3, 5, 6}, "the ends of epochs");
    expect(run_with(linear, Steps{6}).first == std::vector<double>{1, 1, 4, 4, 9, 9}, "in proportion to the batch");
    expect(run_with(square_root, Steps{6}).first == std::vector<double>{1, 1, 2, 2, 3, 3}, "as the root of the batch");

    Run run(world, {.batch_size = 10, .batch_size_from_step = {{2, 40}}});
    PointNet net(run.context());
    optim::AdamW<Float32> optimizer(net);
    run.add(net, optimizer);
    data::BatchOptions without = run.batch();
    without.batch_size_from_step.clear();
    const PointLoader loader(without);
    expect_error(
        ErrorCode::invalid_argument, [&] { run.steps(loader).begin(); },
        "the loader has a batch of 10 samples in step 2, the run one of 40", "run.batch()");
  });
  CHECK(
      log.has("steps of 10 samples, 40 from step 2 on, 90 from step 4 on, learning rate by a function of the step; the rate is "
              "scaled with the batch size"));
}

TEST_CASE("how long a run lasts") {
  const Log log;
  run_ranks(2, [](const Group& world) {
    const auto steps_of = [&world](const Amount& until, std::int64_t batch_size) {
      Run run(world, {.until = until, .batch_size = batch_size});
      const PointLoader loader(run.batch());
      std::int64_t steps = 0;
      for (const auto& step : run.steps(loader)) steps += step.number() == steps ? 1 : 1000;
      expect(run.total_steps() == steps && run.done() == steps, "{} steps are all that were done", steps);
      return steps;
    };
    expect(steps_of(Steps{7}, 12) == 7, "steps");
    expect(steps_of(Samples{24}, 12) == 2, "samples");
    expect(steps_of(Samples{25}, 12) == 3, "a part of a step's samples");
    expect(steps_of(Epochs{3}, 12) == 15, "epochs");
    expect(steps_of(Epochs{0.1}, 12) == 1, "a part of an epoch");
    expect(steps_of(Epochs{2}, 16) == 8, "epochs that are no whole steps: 120 samples by 16");
    expect_error(
        ErrorCode::invalid_argument, [&] { steps_of(Tokens{100}, 12); }, "reads no tokens");
    expect_error(
        ErrorCode::invalid_argument, [&] { steps_of(Steps{0}, 12); }, "Options::until");
    expect_error(
        ErrorCode::invalid_argument, [&] { steps_of(Epochs{-1}, 12); }, "Options::until");
  });
}

TEST_CASE("a run of seconds ends on all ranks at the same step") {
  const Log log;
  run_ranks(2, [](const Group& world) {
    Run run(world, {.until = Seconds{0.2}, .batch_size = 12});
    const PointLoader loader(run.batch());
    std::array<std::int64_t, 1> steps{0};
    for (auto& step : run.steps(loader)) steps[0] = step.number() + 1;
    expect(!run.total_steps() && !run.stopped(), "nobody knew how many, and it was not cut short");
    const std::int64_t own = steps[0];
    world.all_reduce(std::span(steps), ReduceOp::max).wait_on_host();
    expect(steps[0] == own && own > 1, "{} steps on each rank", own);
  });
}

TEST_CASE("when something is due") {
  const Log log;
  run_ranks(1, [](const Group& world) {
    const auto due_after = [&world](const Place& every, std::int64_t batch_size) {
      Run run(world, {.until = Steps{11}, .batch_size = batch_size});
      const PointLoader loader(run.batch());
      std::vector<std::int64_t> after;
      for (auto& step : run.steps(loader)) {
        if (run.due(every)) after.push_back(step.number() + 1);
      }
      return after;
    };
    using List = std::vector<std::int64_t>;
    expect(due_after(Steps{4}, 12) == List{4, 8, 11}, "steps, and the last one");
    expect(due_after(Samples{30}, 12) == List{3, 5, 8, 10, 11}, "samples");
    expect(due_after(Epochs{1}, 12) == List{5, 10, 11}, "epochs");
    expect(due_after(Epochs{0.5}, 12) == List{3, 5, 8, 10, 11}, "halves of epochs");
    expect(due_after(Epochs{1}, 60) == List{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, "an epoch a step");
    expect_error(
        ErrorCode::invalid_argument, [&] { due_after(Steps{0}, 12); }, "more than 0 steps");
    const Run run(world, {});
    expect_error(
        ErrorCode::invalid_argument, [&] { static_cast<void>(run.due(Steps{1})); }, "in the loop");
  });
}

TEST_CASE("an evaluation on an expert axis counts every sample once") {
  run_ranks(4, [](const Group& world) {
    Run run(world, {.until = Steps{1}, .batch_size = 12, .mesh = {.expert = 2}});
    PointNet net(run.context());
    run.add(net);
    const Mean loss = run.evaluate(net, TestPoints());
    expect(loss.weight == 50, "50 samples, got {}", loss.weight);
    expect(std::abs(loss.value() - loss.sum / 50) < 1e-12, "a mean of {}, got {}", loss.sum / 50, loss.value());
    const auto ones = run.evaluate(net, TestPoints(), [](const auto&, const PointBatch& batch) {
      const auto rows = static_cast<double>(batch.x.dim(0));
      return std::array{Mean{.sum = rows, .weight = rows}, Mean{.sum = 3 * rows, .weight = 1}};
    });
    expect(ones[0].sum == 50 && ones[1].sum == 150, "sums over 50 samples, got {} and {}", ones[0].sum, ones[1].sum);
  });
}

TEST_CASE("a rank without memory says so to all, in what they agree on too") {
  const Log log;
  run_ranks(2, [](const Group& world) {
    const auto read = [&world] {
      if (world.rank() == 1) throw std::bad_alloc();
    };
    expect_error(
        ErrorCode::out_of_memory, [&] { world.agree(read, "read the data"); }, "there is not enough memory", "rank 1");
  });
}

TEST_CASE("an evaluation counts every sample once, and leaves no trace") {
  const Log log;
  Mean alone;
  for (const int ranks : {1, 2, 3}) {
    run_ranks(ranks, [&](const Group& world) {
      const Options options{.until = Steps{4}, .batch_size = 12};
      Run run(world, options);
      PointNet net(run.context());
      optim::AdamW<Float32> optimizer(net);
      run.add(net, optimizer);
      net.drop.eval();  // a part that is in evaluation stays so
      const PointLoader loader(run.batch());
      std::vector<Mean> losses;
      for (auto& step : run.steps(loader)) {
        for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
        expect_error(
            ErrorCode::invalid_argument, [&] { run.evaluate(net, TestPoints()); }, "before step.update(optimizer)");
        step.update(optimizer);
        losses.push_back(run.evaluate(net, TestPoints()));
        expect(net.training() && !net.drop.training(), "modes as they were");
      }
      expect(losses.back().weight == 50, "50 samples, got {}", losses.back().weight);
      const auto both = run.evaluate(net, TestPoints(), [&](const auto& y, const PointBatch& batch) {
        return std::array{Mean{.sum = net.loss(y, batch).sum.value().item(), .weight = static_cast<double>(y.shape()[0])},
                          Mean{.sum = 0, .weight = 1}};
      });
      expect(std::abs(both[0].value() - losses.back().value()) < 1e-6, "the same mean by hand");
      const Mean one = run.evaluate(net, TestPoints{1});
      expect(one.weight == 1 && std::isfinite(one.value()), "ranks without a sample");
      const Mean none = run.evaluate(net, TestPoints{0});
      expect(none.weight == 0 && std::isnan(none.value()), "a mean of nothing");
      expect_error(
          ErrorCode::internal,
          [&] {
            world.agree([&] {
              run.evaluate(net, TestPoints(), [](const auto&, const auto&) -> Mean { throw std::runtime_error("in f"); });
            });
          },
          "in f");
      expect(net.training() && !net.drop.training(), "modes as they were after a failure");
      if (world.rank() == 0 && ranks == 1) alone = losses.back();
      expect(std::abs(losses.back().value() - alone.value()) < 1e-5, "the loss of one rank: {}, got {}", alone.value(),
             losses.back().value());
    });
  }
  run_ranks(2, [](const Group& world) {
    // Evaluations between steps change nothing of what follows, dropout included.
    Run run(world, {.until = Steps{20}, .batch_size = 12});
    PointNet net(run.context());
    optim::AdamW<Float32> optimizer(net);
    run.add(net, optimizer);
    const PointLoader loader(run.batch());
    for (auto& step : run.steps(loader)) {
      for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
      step.update(optimizer);
      run.report({{"test_loss", run.evaluate(net, TestPoints())}});
    }
    expect(values_of(net) == trained_by_hand(world, 12, 0, 20), "the same bits as without");
  });
}

TEST_CASE("mistakes in a loop get one line") {
  const Log log;
  run_ranks(2, [](const Group& world) {
    const auto expect_mistake = [&world](const auto& body, const char* text) {
      Run run(world, {.until = Steps{3}, .batch_size = 12});
      PointNet net(run.context());
      optim::AdamW<Float32> optimizer(net);
      const PointLoader loader(run.batch());
      expect_error(
          ErrorCode::invalid_argument, [&] { body(run, net, optimizer, loader); }, text);
    };
    const auto backward = [](auto& step, const PointNet& net) {
      for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
    };
    expect_mistake(
        [&](Run& run, PointNet& net, auto& optimizer, const auto& loader) {
          run.add(net, optimizer);
          for (auto& step : run.steps(loader)) backward(step, net);
        },
        "step 0 has ended without step.update(optimizer)");
    expect_mistake(
        [&](Run& run, PointNet& net, auto&, const auto& loader) {
          for (auto& step : run.steps(loader)) backward(step, net);
        },
        "call run.add(model, optimizer) before run.steps()");
    expect_mistake(
        [&](Run& run, PointNet& net, auto& optimizer, const auto& loader) {
          run.add(net, optimizer);
          for (auto& step : run.steps(loader)) {
            backward(step, net);
            step.update(optimizer);
            step.update(optimizer);
          }
        },
        "after its end");
    expect_mistake(
        [&](Run& run, PointNet& net, auto& optimizer, const auto& loader) {
          run.add(net, optimizer);
          optim::AdamW<Float32> other(net);
          for (auto& step : run.steps(loader)) {
            backward(step, net);
            step.update(other);
          }
        },
        "an optimizer that the run does not know");
    expect_mistake(
        [&](Run& run, PointNet& net, auto& optimizer, const auto&) {
          run.add(net, optimizer);
          run.add(net, optimizer, "again.");
        },
        "was added to the run before");
    expect_mistake(
        [&](Run& run, PointNet& net, auto& optimizer, const auto&) {
          run.add(net, optimizer);
          PointNet second(run.context());
          run.add(second);
        },
        "have prefixes that differ");
    expect_mistake(
        [&](Run& run, PointNet& net, auto& optimizer, const auto& loader) {
          run.add(net, optimizer);
          for (auto& step : run.steps(loader)) {
            backward(step, net);
            step.update(optimizer);
          }
          for (auto& step : run.steps(loader)) backward(step, net);
        },
        "a run has one loop");
    expect_mistake(
        [&](Run& run, PointNet& net, auto& optimizer, const auto& loader) {
          for (auto& step : run.steps(loader)) {
            static_cast<void>(step);
            run.add(net, optimizer);
          }
        },
        "before its loop");
    expect_mistake(
        [&](Run& run, PointNet& net, auto& optimizer, const auto& loader) {
          run.add(net, optimizer);
          run.after_step([&](const trainer::StepReport&, StepRequests&) { world.barrier("in a callback"); });
          for (auto& step : run.steps(loader)) {
            backward(step, net);
            step.update(optimizer);
          }
        },
        "a callback of Run::after_step calls barrier \"in a callback\"");
    expect_mistake([&](Run& run, PointNet& net, auto&, const auto&) { static_cast<void>(run.begin(net)); },
                   "a model that the run does not train");
    expect_error(
        ErrorCode::rank_mismatch, [&] { const Run run(world, {.batch_size = 12 + 2 * world.rank()}); }, "batch_size");
    expect_error(
        ErrorCode::invalid_argument, [&] { const Run run(world, {.batch_size = 0}); }, "batch_size");
    expect_error(
        ErrorCode::io, [&] { const Run run(world, {.metrics = "/no/such/folder/metrics.csv"}); }, "/no/such/folder");
  });
}

TEST_CASE("callbacks see what all ranks share, and ask") {
  const Log log;
  run_ranks(2, [](const Group& world) {
    Run run(world, {.until = Steps{9}, .batch_size = 12});
    PointNet net(run.context());
    optim::AdamW<Float32> optimizer(net);
    run.add(net, optimizer);
    std::vector<double> losses;
    run.after_step([&](const trainer::StepReport& report, StepRequests& requests) {
      expect(report.step == std::ssize(losses) && report.steps == 9 && report.is_finite, "the step's place");
      losses.push_back(report.loss);
      requests.stop = report.step == 3 && world.rank() == 1;
    });
    const PointLoader loader(run.batch());
    for (auto& step : run.steps(loader)) {
      for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
      step.update(optimizer);
    }
    expect(run.done() == 5 && run.stopped(), "one step after rank 1 has asked: {}", run.done());
    std::array<double, 1> last{losses.back()};
    world.broadcast(std::span(last), 0).wait_on_host();
    expect(last[0] == losses.back(), "the same loss on all ranks");
  });
  CHECK_THROWS_WITH(run_ranks(2,
                              [](const Group& world) {
                                Run run(world, {.until = Steps{9}, .batch_size = 12});
                                const PointLoader loader(run.batch());
                                run.after_step([&](const trainer::StepReport& report, StepRequests&) {
                                  if (report.step == 2 && world.rank() == 1) throw std::runtime_error("of a callback");
                                });
                                for (const auto& step : run.steps(loader)) static_cast<void>(step);
                              }),
                    ContainsSubstring("of a callback"));
}

TEST_CASE("each model of each rank has a communication hook of its own") {
  const Log log;
  const parallel::CompressionOptions compression{.hook = parallel::parse_compression("powersgd:1"),
                                                 .only_if_faster = false,
                                                 .between = parallel::CompressionBetween::ranks};
  const Options options{.until = Steps{5}, .batch_size = 12, .parallel = {.sum = parallel::Hooked{compression}}};
  run_ranks(2, [&](const Group& world) {
    Run run(world, options);
    PointNet first(run.context());
    PointNet second(run.context());
    optim::AdamW<Float32> of_first(first);
    optim::AdamW<Float32> of_second(second);
    run.add(first, of_first, "first.");
    run.add(second, of_second, "second.");
    const PointLoader loader(run.batch());
    for (auto& step : run.steps(loader)) {
      for (const auto& batch : step.batches()) step.backward(batch, [&] { return first.loss(first.forward(batch), batch); });
      step.update(of_first);
      parallel::Step other = run.begin(second);
      const PointBatch batch = loader.load(step.number());
      other.backward(batch, [&] { return second.loss(second.forward(batch), batch); });
      other.update(of_second, run.update_options(of_second));
    }
    expect(run.done() == 5, "both were trained");
  });
}

TEST_CASE("the metrics and the last lines of a run have what its loader reports") {
  const Log log;
  run_ranks(2, [&](const Group& world) {
    std::vector<monitor::Snapshot> snapshots;
    Run run(world, {.until = Steps{3}, .batch_size = 12, .micro_batch_size = 3});
    run.add_sink(std::make_unique<Kept>(snapshots));
    PointNet net(run.context());
    optim::AdamW<Float32> optimizer(net);
    run.add(net, optimizer);
    const ReportingLoader loader(run.batch());
    for (auto& step : run.steps(loader)) {
      for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
      step.update(optimizer);
    }
    if (world.rank() != 0) return;
    const auto increase = [&](std::size_t step, const char* name) {
      const monitor::Metric* metric = snapshots[step].find(name);
      return metric == nullptr ? 0 : metric->increase;
    };
    for (const std::size_t step : {0, 1, 2}) {  // of two micro-batches each
      expect(increase(step, "data_waiting_seconds") > 0, "the time that a step waits");
      expect(increase(step, "data_loading_seconds") == 4 && increase(step, "data_decoding_seconds") == 1, "times of stages");
      expect(increase(step, "bad_samples") == (step == 0 ? 2 : 0), "bad samples");
      expect(snapshots[step].find("data_ready_batches")->value == 3, "what is ready");
      expect(snapshots[step].find("data_reading_seconds") == nullptr, "what is not reported is left out");
    }
  });
  CHECK(log.has("4 bad samples were replaced by good ones: the log names each"));
}

TEST_CASE("metrics of a run") {
  const Log log;
  const RunFolder folder;
  std::filesystem::create_directories(folder.path);
  run_ranks(2, [&](const Group& world) {
    monitor::Registry::current().restart();
    std::vector<monitor::Snapshot> snapshots;
    Run run(world, {.until = Steps{3}, .batch_size = 12, .metrics = folder.path / "metrics.jsonl"});
    run.add_sink(std::make_unique<Kept>(snapshots));
    PointNet net(run.context());
    optim::AdamW<Float32> optimizer(net);
    run.add(net, optimizer);
    const PointLoader loader(run.batch());
    double loss = 0;
    for (auto& step : run.steps(loader)) {
      for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
      step.update(optimizer);
      loss = step.finish().loss();
      if (step.number() == 1) run.report({{"test_accuracy", 0.75}});
    }
    if (world.rank() != 0) return expect(snapshots.empty(), "metrics are written by rank 0");
    expect(snapshots.size() == 3, "a snapshot a step");
    const monitor::Snapshot& last = snapshots.back();
    expect(last.step == 3 && last.steps == 3 && last.share == 1 && last.last && last.epoch == 0.6, "its place");
    for (const char* name : {"loss", "gradient_norm", "learning_rate", "step_seconds", "exposed_communication_seconds"}) {
      expect(last.find(name) != nullptr && last.find(name)->changed, "{}", name);
    }
    expect(last.find("loss")->value == loss, "the loss of the step");
    expect(last.find("samples")->value == 36 && last.find("samples")->increase == 12, "samples of all ranks");
    expect(last.find("targets")->value == 36, "targets");
    expect(snapshots[1].find("test_accuracy")->changed && !last.find("test_accuracy")->changed, "what is reported once");
  });
  CHECK(std::filesystem::file_size(folder.path / "metrics.jsonl") > 0);
  CHECK(log.has("step 2: test_accuracy 0.75"));
}
