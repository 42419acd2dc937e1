// Every pair of differences between two starts of a training by fit(), against the same training on one rank, and against the
// result that follows from its validations, its patience and its length.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "covering_array.hpp"
#include "trainer/small_run.hpp"
#include "trireme/core/log.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trainer/fit.hpp"

using namespace trireme;
using namespace trireme::test;
using trainer::FitEnd;

namespace {

constexpr std::int64_t batch_size = 10;  // 3 and 4 ranks do not divide it
constexpr int patience = 2;

enum class FirstEnds : std::uint8_t { by_its_loop, asked_by_a_rank, by_patience, finished };
enum class SecondData : std::uint8_t { same, refused, other, shorter };
enum class Until : std::uint8_t { steps, more_steps, epochs };  // of the second start

struct Setup {
  int first_ranks = 1;
  int second_ranks = 1;
  FirstEnds first_ends = FirstEnds::by_its_loop;
  SecondData data = SecondData::same;
  Until until = Until::steps;
  bool more_patience = false;
  bool keeps_best = false;
  std::int64_t micro_batch_size = 0;

  std::string str() const {
    return fmt::format(
        "{} ranks, then {}, the first ends {}, the second with {}, {}, {}{}, micro-batches of {}", first_ranks, second_ranks,
        std::array{"by its loop", "asked by a rank", "by patience", "finished"}[static_cast<std::size_t>(first_ends)],
        std::array{"the same data", "refused data", "other data", "shorter data"}[static_cast<std::size_t>(data)],
        std::array{"as many steps", "more steps", "epochs"}[static_cast<std::size_t>(until)],
        more_patience ? "more patience" : "the same patience", keeps_best ? ", keeps the best" : "", micro_batch_size);
  }
  Setup alone() const {
    Setup one = *this;
    one.first_ranks = one.second_ranks = 1;
    one.micro_batch_size = 0;
    return one;
  }
};

// Ranks, ranks, end, data, length, patience, best, micro-batches.
constexpr std::array<std::size_t, 8> factor_sizes = {4, 4, 4, 4, 3, 2, 2, 2};

Setup setup_of(const tests::Combination& row) {
  return {.first_ranks = static_cast<int>(row[0]) + 1,
          .second_ranks = static_cast<int>(row[1]) + 1,
          .first_ends = static_cast<FirstEnds>(row[2]),
          .data = static_cast<SecondData>(row[3]),
          .until = static_cast<Until>(row[4]),
          .more_patience = row[5] == 1,
          .keeps_best = row[6] == 1,
          .micro_batch_size = row[7] == 1 ? 5 : 0};
}

const std::set<tests::ChoicePair> refused{{{0, 2}, {7, 1}}, {{0, 3}, {7, 1}}, {{1, 2}, {7, 1}}, {{1, 3}, {7, 1}}};

// Points from a number on.
class Points {
 public:
  Points(const data::BatchOptions& options, std::int64_t begin, std::int64_t count)
      : seed_(options.seed), share_(options), begin_(begin), count_(count) {}

  std::int64_t num_micro_batches() const { return share_.num_micro_batches(); }
  std::int64_t batch_size() const { return share_.batch_size(); }
  std::int64_t samples_per_epoch() const { return count_; }
  std::string content() const { return fmt::format("{} points from {} on", count_, begin_); }
  PointBatch load(std::int64_t step, std::int64_t micro_batch = 0) const {
    const std::int64_t first = share_.first_sample(step, micro_batch);
    std::vector<std::int64_t> numbers;
    for (std::int64_t sample = first; sample < first + share_.micro_batch_size(step); ++sample) {
      numbers.push_back(begin_ +
                        data::Permutation(count_, seed_, static_cast<std::uint64_t>(sample / count_))(sample % count_));
    }
    return points(numbers, first);
  }

 private:
  std::uint64_t seed_;
  data::BatchShare share_;
  std::int64_t begin_, count_;
};

// The result of a validation after this many steps.
double validation_after(std::int64_t steps) {
  constexpr std::array<double, 10> results{5, 3, 4, 3.5, 2, 2.5, 2.6, 2.7, 2.8, 2.9};  // every second step
  return results.at(static_cast<std::size_t>(steps / 2 - 1));
}

// The settings of one start.
struct Start {
  Amount until;
  std::int64_t begin = 0, count = 60;  // of the points
  bool allows_other_data = false;
  int patience = 2;
  std::int64_t stops_at = 0;  // the loop
  std::int64_t asked_at = 0;  // of all ranks by one
};

std::vector<Start> starts_of(const Setup& setup) {
  const bool epochs = setup.until == Until::epochs;
  const auto amount = [&](std::int64_t steps) {
    return epochs ? Amount(Epochs{static_cast<double>(steps) / 6}) : Amount(Steps{steps});
  };
  Start first{.until = amount(12)};
  switch (setup.first_ends) {
    case FirstEnds::by_its_loop: first.stops_at = 4; break;
    case FirstEnds::asked_by_a_rank: first.asked_at = 5; break;
    case FirstEnds::by_patience: break;
    case FirstEnds::finished: first.until = amount(6); break;
  }
  Start second{.until = amount(setup.until == Until::more_steps ? 20 : 12), .patience = setup.more_patience ? 4 : patience};
  if (setup.data == SecondData::other) second.begin = 200;
  if (setup.data == SecondData::shorter) second.count = 30;
  second.allows_other_data = setup.data == SecondData::other || setup.data == SecondData::shorter;
  return {first, second};
}

struct Progress {
  std::int64_t done = 0;
  std::int64_t best_step = 0;
  double best = 0;
  int without_better = 0;
  FitEnd end = FitEnd::finished;

  friend bool operator==(const Progress& a, const Progress& b) {
    return a.done == b.done && a.best_step == b.best_step && a.best == b.best && a.end == b.end;
  }
};

// The expected progress, computed from the rules alone.
void follow(const Start& start, Progress& progress) {
  const auto* epochs = std::get_if<Epochs>(&start.until);
  const std::int64_t total = epochs != nullptr ? std::llround(epochs->count * static_cast<double>(start.count) / batch_size)
                                               : std::get<Steps>(start.until).count;
  const auto out_of_patience = [&] { return progress.without_better >= start.patience; };
  bool stops = out_of_patience();
  while (!stops && progress.done < total) {
    const std::int64_t done = ++progress.done;
    stops = done == start.asked_at || done == start.stops_at;
    if (done % 2 != 0) continue;
    const double result = validation_after(done);
    if (progress.best_step == 0 || result < progress.best) {
      progress.best = result, progress.best_step = done, progress.without_better = 0;
    } else {
      ++progress.without_better;
    }
    stops = stops || out_of_patience();
  }
  progress.end = progress.done >= total ? FitEnd::finished : out_of_patience() ? FitEnd::patience : FitEnd::interrupted;
}

struct Trained {
  Progress progress;
  std::vector<float> values;
};

Trained train(const Group& world, const Setup& setup, const Start& start, const RunFolder& folder) {
  trainer::Run run(world, {.until = start.until,
                           .batch_size = batch_size,
                           .micro_batch_size = setup.micro_batch_size,
                           .base_learning_rate = 0.01,
                           .checkpoints = {.directory = folder.path, .chunk_bytes = 1024},
                           .checkpoint_every = Steps{1'000'000},
                           .allow_other_data = start.allows_other_data});
  run.describe("patience", std::to_string(start.patience), trainer::Differs::told);
  run.after_step([&](const trainer::StepReport&, StepRequests& requests) {
    requests.stop = run.done() == start.asked_at - 1 && world.rank() == world.size() - 1;
  });
  PointNet net(run.context());
  optim::AdamW<Float32> optimizer(net);
  const Points loader(run.batch(), start.begin, start.count);
  const auto validate = [&] {
    run.evaluate(net, TestPoints());
    if (run.done() == start.stops_at) run.stop();
    return validation_after(run.done());
  };
  const trainer::FitReport report = trainer::fit(
      run, net, optimizer, loader,
      {.validate = validate, .validate_every = Steps{2}, .patience = start.patience, .keep_best = setup.keeps_best});
  return {.progress = {.done = run.done(), .best_step = report.best_step, .best = report.best.value_or(0), .end = report.end},
          .values = values_of(net)};
}

// Of both starts. Where the second one's data are refused, it is tried with other data first.
std::vector<Trained> train_twice(const Setup& setup) {
  const RunFolder folder;
  const std::vector<Start> starts = starts_of(setup);
  std::vector<Trained> trained(starts.size());
  for (std::size_t number = 0; number < starts.size(); ++number) {
    testing::run_ranks(number == 0 ? setup.first_ranks : setup.second_ranks, [&](const Group& world) {
      if (number == 1 && setup.data == SecondData::refused) {
        Start other = starts[1];
        other.begin = 200;
        expect_error(
            ErrorCode::invalid_argument, [&] { train(world, setup, other, folder); }, "made with another data_content");
      }
      const Trained here = train(world, setup, starts[number], folder);
      if (world.rank() == 0) trained[number] = here;
    });
  }
  return trained;
}

}  // namespace

TEST_CASE("fit: every pair of ends, data, lengths, patience and ranks of two starts trains what one rank trains") {
  set_log_sink([](Severity, std::string_view) {});
  std::map<std::string, std::vector<Trained>> alone;
  for (const tests::Combination& row : tests::covering_array(factor_sizes, refused)) {
    const Setup setup = setup_of(row);
    INFO(setup.str());
    const std::vector<Trained> trained = train_twice(setup);
    const auto [wanted, missing] = alone.try_emplace(setup.alone().str());
    if (missing) wanted->second = train_twice(setup.alone());
    Progress by_rules;
    for (std::size_t number = 0; number < 2; ++number) {
      INFO("start " << number);
      follow(starts_of(setup)[number], by_rules);
      const Progress& had = trained[number].progress;
      INFO(had.done << " steps for " << by_rules.done << ", best of " << had.best_step << " for " << by_rules.best_step);
      CHECK(had == by_rules);
      const std::vector<float>& values = wanted->second[number].values;
      REQUIRE(trained[number].values.size() == values.size());
      float worst = 0;
      for (std::size_t i = 0; i < values.size(); ++i) worst = std::max(worst, std::abs(trained[number].values[i] - values[i]));
      CHECK(worst < 1e-4F);
    }
  }
  set_log_sink({});
}

TEST_CASE("fit: micro-batches of shares that differ are refused on all ranks") {
  set_log_sink([](Severity, std::string_view) {});
  for (const tests::ChoicePair& pair : refused) {
    tests::Combination row(factor_sizes.size());
    row[0] = pair.first.value;
    row[pair.second.factor] = pair.second.value;
    const Setup setup = setup_of(row);
    const RunFolder folder;
    testing::run_ranks(setup.first_ranks, [&](const Group& world) {
      expect_error(
          ErrorCode::invalid_argument, [&] { train(world, setup, starts_of(setup)[0], folder); },
          "a batch of 10 samples cannot be shared equally", "in micro-batches of 5");
    });
  }
  set_log_sink({});
}
