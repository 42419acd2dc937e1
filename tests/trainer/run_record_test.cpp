// What a run leaves behind: a record of how it was started, and its process as it was.

#include <csignal>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "trainer/small_run.hpp"
#include "trireme/core/version.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::test;
using testing::run_ranks;
using trainer::Run;

namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void train(Run& run, const auto& in_body) {
  PointNet net(run.context());
  optim::AdamW<Float32> optimizer(net);
  run.add(net, optimizer);
  const PointLoader loader(run.batch());
  for (auto& step : run.steps(loader)) {
    for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
    step.update(optimizer);
    in_body(run, net);
  }
}
void train(Run& run) {
  train(run, [](const auto&...) {});
}

using Handler = void (*)(int);
Handler handler_of(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler;
}

}  // namespace

TEST_CASE("each start of a run is recorded beside its checkpoints") {
  const RunFolder folder;
  for (const int steps : {2, 3}) {
    run_ranks(2, [&](const Group& world) {
      Run run(world, {.until = Steps{steps},
                      .batch_size = 12,
                      .checkpoints = {.directory = folder.path},
                      .command = "train --steps " + std::to_string(steps),
                      .configuration = "steps = " + std::to_string(steps) + "\n"});
      train(run);
    });
  }
  std::ifstream lines(folder.path / "runs.jsonl");
  std::vector<nlohmann::json> starts;
  for (std::string line; std::getline(lines, line);) starts.push_back(nlohmann::json::parse(line));
  REQUIRE(starts.size() == 2);
  CHECK(starts[0]["command"] == "train --steps 2");
  CHECK(starts[0]["first_step"] == 0);
  CHECK(starts[1]["command"] == "train --steps 3");
  CHECK(starts[1]["first_step"] == 2);
  CHECK(starts[1]["trireme"] == std::string(version()));
  CHECK(starts[1]["ranks"] == 2);
  CHECK(starts[1]["settings"]["seed"] == "1");
  CHECK(content_of(folder.path / "options.toml") == "steps = 3\n");
}

TEST_CASE("a run gives signals back, and one that only evaluates takes none") {
  const RunFolder folder;
  const Handler before = handler_of(SIGINT);
  run_ranks(1, [&](const Group& world) {
    trainer::Options options{
        .until = Steps{2}, .batch_size = 12, .checkpoints = {.directory = folder.path}, .process = {.signals = true}};
    {
      Run run(world, options);
      expect(handler_of(SIGINT) != before, "a run with checkpoints listens");
      train(run);
    }
    expect(handler_of(SIGINT) == before, "after it nobody does");
    Run evaluation(world, options);
    PointNet net(evaluation.context());
    evaluation.add(net);
    evaluation.evaluate(net, TestPoints());
    expect(handler_of(SIGINT) == before, "there is nothing to save");
  });
  CHECK(handler_of(SIGINT) == before);
}

TEST_CASE("the last step of a run that lasts a time is due for everything") {
  for (const int ranks : {1, 2}) {
    run_ranks(ranks, [&](const Group& world) {
      Run run(world, {.until = Seconds{0.2}, .batch_size = 12});
      std::int64_t last_due = -1;
      train(run, [&](Run& in, const PointNet&) {
        if (in.due(Steps{1'000'000'000})) last_due = in.done();
      });
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
