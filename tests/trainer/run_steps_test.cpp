// Steps of a run: when the last one is due, the random numbers of repeated ones, and the data of an evaluation.

#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "trainer/small_run.hpp"
#include "trireme/data/loaders/prefetching.hpp"
#include "trireme/data/loaders/stream_loader.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::test;
using testing::run_ranks;
using trainer::Run;

TEST_CASE("the last step of a run that lasts a time is due for everything") {
  for (const int ranks : {1, 2}) {
    run_ranks(ranks, [&](const Group& world) {
      Run run(world, {.until = Seconds{0.2}, .batch_size = 12});
      PointNet net(run.context());
      optim::AdamW<Float32> optimizer(net);
      run.add(net, optimizer);
      const PointLoader loader(run.batch());
      std::int64_t last_due = -1;
      for (auto& step : run.steps(loader)) {
        for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
        step.update(optimizer);
        if (run.due(Steps{1'000'000'000})) last_due = run.done();
      }
      expect(run.done() > 1 && last_due == run.done(), "only the last step is due");
    });
  }
}

TEST_CASE("several steps of one number draw different random numbers, and one that is done over the same") {
  run_ranks(2, [](const Group& world) {
    PointNet net;
    net.initialize();
    parallel::DataParallel replicas(net, ProcessMesh(world));
    optim::AdamW<Float32> optimizer(net);
    const PointBatch batch = points({0, 1, 2, 3}, 4 * world.rank());
    std::vector<float> drawn;
    const auto loss = [&] {
      const auto mask = net.drop.forward(Variable<float>(Tensor<float>::full({4, 24}, 1)));
      drawn.assign(mask.value().data(), mask.value().data() + mask.value().numel());
      return net.loss(net.forward(batch), batch);
    };
    const auto numbers_of = [&](std::int64_t number, bool update) {
      parallel::Step step = replicas.begin(number);
      step.backward(batch, loss);
      if (update) step.update(optimizer);
      return drawn;
    };
    const auto first = numbers_of(3, true);
    const auto given_up = numbers_of(3, false);
    const auto second = numbers_of(3, true);
    expect(second != first, "the second step of the number");
    expect(second == given_up, "what was given up is done over");
    expect(numbers_of(3, true) != second, "the third");
    numbers_of(4, true);
    expect(numbers_of(3, true) == first, "the first of the number again");
  });
}

TEST_CASE("an evaluation reads the data where they are") {
  struct Pinned : TestPoints {
    Pinned() = default;
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;
  };
  run_ranks(1, [](const Group& world) {
    Run run(world, {.batch_size = 12});
    PointNet net(run.context());
    run.add(net);
    const Pinned pinned;
    expect(run.evaluate(net, pinned).value() == run.evaluate(net, TestPoints()).value(), "the same loss");
  });
}

namespace {

// Numbers of points, of which there are `count`.
struct PointStream {
  std::optional<std::int64_t> next() {
    if (at == failing) throw std::runtime_error("the stream is broken");
    return at < count ? std::optional(at++) : std::nullopt;
  }
  std::int64_t count = 0;
  std::int64_t failing = -1;
  std::int64_t at = 0;
};

const auto points_of = [](const std::vector<std::int64_t>& numbers, std::int64_t first_sample) {
  return points(numbers, first_sample);
};

struct StreamEnd {
  std::int64_t done = 0;
  std::int64_t due = 0;  // where the last step was due
  std::vector<float> values;
};

// A run with two shards: the ranks differ in where their data end.
StreamEnd train_on_streams(const Group& world, const std::vector<std::int64_t>& counts, const std::filesystem::path& folder,
                           std::int64_t until = 1'000) {
  Run run(world, {.until = Steps{until}, .batch_size = 12, .checkpoints = {.directory = folder}});
  PointNet net(run.context());
  optim::AdamW<Float32> optimizer(net);
  run.add(net, optimizer);
  const auto open = [counts](const data::StreamPart& part) {
    return PointStream{.count = counts[static_cast<std::size_t>(part.index)]};
  };
  const data::StreamOptions options{.batch = run.batch(), .epochs = 1, .shards = static_cast<int>(counts.size())};
  const data::Prefetching loader(data::StreamLoader(open, options, points_of), {.threads = 2, .batches = 3});
  StreamEnd end;
  for (auto& step : run.steps(loader)) {
    for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
    step.update(optimizer);
    if (run.due(Steps{1'000'000'000})) end.due = run.done();
  }
  expect(!run.stopped(), "the end of the data is no stop");
  end.done = run.done();
  end.values = values_of(net);
  return end;
}

}  // namespace

TEST_CASE("a run ends with the last step for which each rank has data") {
  for (const int ranks : {1, 2, 3}) {
    const RunFolder folder, of_two_starts;
    std::vector<float> whole;
    run_ranks(ranks, [&](const Group& world) {
      const StreamEnd end = train_on_streams(world, {200, 45}, folder.path);  // 7 steps of 6 and 6
      expect(end.done == 7 && end.due == 7, "the last step is known");
      const StreamEnd again = train_on_streams(world, {200, 45}, folder.path);
      expect(again.done == 7 && again.values == end.values, "nothing is left for another start");
      train_on_streams(world, {200, 45}, of_two_starts.path, 3);
    });
    run_ranks(ranks == 3 ? 1 : ranks + 1, [&](const Group& world) {
      const StreamEnd end = train_on_streams(world, {200, 45}, of_two_starts.path);
      expect(end.done == 7 && end.due == 7, "resumed on other ranks");
    });
  }
}

TEST_CASE("a run without data for one step is refused on all ranks, and a broken stream ends it") {
  for (const int ranks : {1, 3}) {
    const RunFolder folder;
    run_ranks(ranks, [&](const Group& world) {
      expect_error(
          ErrorCode::invalid_argument,
          [&] {
            train_on_streams(world, {200, 5}, folder.path);
          },
          "the data hold no batch of 12 samples");
    });
  }
  const auto train = [](const Group& world) {
    Run run(world, {.until = Steps{100}, .batch_size = 12});
    PointNet net(run.context());
    optim::AdamW<Float32> optimizer(net);
    run.add(net, optimizer);
    const std::int64_t failing = world.rank() == 1 ? 30 : -1;
    const data::StreamLoader loader(PointStream{.count = 1'000, .failing = failing}, {.batch = run.batch(), .epochs = 1},
                                    points_of);
    for (auto& step : run.steps(loader)) {
      for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
      step.update(optimizer);
    }
  };
  CHECK_THROWS_WITH(run_ranks(2, train), ContainsSubstring("the stream is broken"));
}
