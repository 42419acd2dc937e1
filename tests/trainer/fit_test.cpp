#include "trireme/trainer/fit.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "trainer/resumed_run.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trainer/run.hpp"

using namespace trireme;
using namespace trireme::test;
using testing::run_ranks;
using trainer::Options;
using trainer::Run;

TEST_CASE("fit: a validation of nan or inf is no better than any, and is kept") {
  const Silence silence;
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  struct Row {
    std::vector<double> results;
    std::optional<double> best;
    std::int64_t best_step;
    std::int64_t steps;
    trainer::FitEnd end;
  };
  const std::vector<Row> rows{{{nan, 3, inf, -inf, 2, nan}, 2, 5, 6, trainer::FitEnd::finished},
                              {{inf, nan, 5, 4, nan, inf}, 4, 4, 6, trainer::FitEnd::finished},
                              {{-inf, nan, inf}, {}, 0, 3, trainer::FitEnd::patience},
                              {{4, -inf, nan, inf}, 4, 1, 4, trainer::FitEnd::patience}};
  for (const Row& row : rows) {
    for (const std::int64_t stop : {0, 1, 2, 3}) {  // after which the run is started again
      const RunFolder folder;
      run_ranks(2, [&](const Group& world) {
        std::size_t validations = 0;
        const auto start = [&](std::int64_t last) {
          Options options = options_in(folder, 0);
          options.until = Steps{6};
          options.checkpoint_every = Steps{1};
          Run run(world, options);
          PointNet net(run.context());
          optim::AdamW<Float32> optimizer(net);
          const PointLoader loader(run.batch());
          const auto validate = [&] {
            if (run.done() == last) run.stop();
            return row.results.at(validations++);
          };
          const auto report =
              trainer::fit(run, net, optimizer, loader,
                           {.validate = validate, .validate_every = Steps{1}, .patience = 3, .keep_best = true});
          expect(last == 0 || run.done() < last || run.done() == row.steps || report.end == trainer::FitEnd::interrupted,
                 "a stop is no end");
          if (last == 0) expect(run.done() == row.steps, "{} steps", run.done());
          return report;
        };
        if (stop > 0) start(stop);
        const trainer::FitReport report = start(0);
        expect(report.end == row.end && report.best == row.best && report.best_step == row.best_step, "best {} of step {}",
               report.best.value_or(-1), report.best_step);
        const double last = row.results.back();
        expect(report.last && (*report.last == last || (std::isnan(last) && std::isnan(*report.last))), "the last one");
      });
    }
  }
}

TEST_CASE("fit: patience, and the best values at the end") {
  const Silence silence;
  for (const int ranks : {1, 2}) {
    const RunFolder folder;
    run_ranks(ranks, [&](const Group& world) {
      const std::vector<double> results{5, 3, 4, 3.5, 3.2, 3.1};  // no better one after the second
      std::vector<std::vector<float>> values;
      Options options = options_in(folder, 0);
      Run run(world, options);
      PointNet net(run.context());
      optim::AdamW<Float32> optimizer(net);
      const PointLoader loader(run.batch());
      const auto validate = [&] {
        values.push_back(values_of(net));
        return results.at(values.size() - 1);
      };
      const trainer::FitReport report = trainer::fit(
          run, net, optimizer, loader, {.validate = validate, .validate_every = Steps{3}, .patience = 3, .keep_best = true});
      expect(run.done() == 15 && run.stopped(), "three validations without a better one: {} steps", run.done());
      expect(report.best == 3 && report.best_step == 6 && report.last == 3.2, "what it tells");
      expect(report.end == trainer::FitEnd::patience, "why it has ended");
      expect(values_of(net) == values[1], "the values of the best validation");
      Run ended(world, options);
      PointNet same(ended.context());
      optim::AdamW<Float32> of_same(same);
      const auto not_called = []() -> double { throw std::logic_error("training went on"); };
      const trainer::FitReport kept = trainer::fit(
          ended, same, of_same, loader, {.validate = not_called, .validate_every = Steps{3}, .patience = 3, .keep_best = true});
      expect(ended.done() == 15 && ended.stopped() && kept.best == 3, "it has ended: {} steps", ended.done());
      expect(values_of(same) == values[1], "the values of the best validation once more");
      expect(kept.end == trainer::FitEnd::patience, "why it had ended");
      const auto with_patience = [&](const char* patience, trainer::Differs differs) {
        options.until = Steps{30};
        Run longer(world, options);
        longer.describe("patience", patience, differs, "3");
        PointNet more(longer.context());
        optim::AdamW<Float32> of_more(more);
        trainer::fit(longer, more, of_more, loader,
                     {.validate = [] { return 2.0; }, .validate_every = Steps{3}, .patience = 5, .keep_best = true});
        return longer.done();
      };
      expect_error(
          ErrorCode::invalid_argument, [&] { with_patience("5", trainer::Differs::refused); }, "made with another patience",
          "the Differs of CommandLine::add");
      expect(with_patience("5", trainer::Differs::told) == 30, "more patience, and a program that says that it may differ");
      Run again(world, options);
      PointNet other(again.context());
      optim::AdamW<Float32> of_other(other);
      expect_error(
          ErrorCode::invalid_argument, [&] { trainer::fit(again, other, of_other, loader, {.keep_best = true}); },
          "needs a validation");
    });
    run_ranks(1, [&](const Group& world) {
      Run of_best(world, {.checkpoints = {.directory = folder.path / "best"}});
      PointNet best(of_best.context());
      of_best.add(best);
      of_best.load();
      Run run(world, {});
      PointNet net(run.context());
      optim::AdamW<Float32> optimizer(net);
      const PointLoader loader(run.batch());
      expect(values_of(best) != values_of(net), "another program has the best values");
      expect_error(
          ErrorCode::invalid_argument,
          [&] { trainer::fit(run, net, optimizer, loader, {.validate = [] { return 1.0; }, .keep_best = true}); },
          "give the run a directory");
      const trainer::FitReport none = trainer::fit(run, net, optimizer, loader);
      expect(!none.best && run.done() == 2, "an epoch of 60 points by 32, without a validation: {} steps", run.done());
    });
  }
}
