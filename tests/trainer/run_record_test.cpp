// After a run: the record of how it was started, and the unchanged process.

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "trainer/small_run.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/core/log.hpp"
#include "trireme/core/version.hpp"
#include "trireme/data/loaders/loader.hpp"
#include "trireme/data/tables/table.hpp"
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

TEST_CASE("a start that is refused changes nothing beside the checkpoints") {
  const RunFolder folder;
  const auto start = [&](std::uint64_t seed, const std::string& configuration) {
    run_ranks(2, [&](const Group& world) {
      Run run(world, {.until = Steps{2},
                      .batch_size = 12,
                      .seed = seed,
                      .checkpoints = {.directory = folder.path},
                      .metrics = folder.path / "metrics.jsonl",
                      .configuration = configuration});
      train(run);
    });
  };
  std::filesystem::create_directories(folder.path);
  start(1, "seed = 1\n");
  const std::string metrics = content_of(folder.path / "metrics.jsonl");
  const std::string starts = content_of(folder.path / "runs.jsonl");
  CHECK_THROWS_WITH(start(2, "seed = 2\n"), ContainsSubstring("made with another seed"));
  CHECK(content_of(folder.path / "options.toml") == "seed = 1\n");
  CHECK(content_of(folder.path / "metrics.jsonl") == metrics);
  CHECK(content_of(folder.path / "runs.jsonl") == starts);
  CHECK_FALSE(std::filesystem::exists(folder.path / "writer.json"));
}

TEST_CASE("a run that has loaded and reported before its loop is refused for its data before it writes") {
  const RunFolder folder;
  std::filesystem::create_directories(folder.path);
  struct OtherPoints : PointLoader {
    using PointLoader::PointLoader;
    std::int64_t samples_per_epoch() const { return samples + 1; }
  };
  trainer::Options options{.until = Steps{4},
                           .batch_size = 12,
                           .checkpoints = {.directory = folder.path, .keep = 9},
                           .checkpoint_every = Steps{2},
                           .metrics = folder.path / "metrics.jsonl"};
  const auto start = [&](const auto& loader_of) {
    run_ranks(2, [&](const Group& world) {
      Run run(world, options);
      PointNet net(run.context());
      optim::AdamW<Float32> optimizer(net);
      run.add(net, optimizer);
      run.load();
      run.report({{"before", 1}});
      const auto loader = loader_of(run);
      for (auto& step : run.steps(loader)) {
        for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
        step.update(optimizer);
      }
    });
  };
  const auto same = [](const Run& run) { return PointLoader(run.batch()); };
  const auto other = [](const Run& run) { return OtherPoints(run.batch()); };
  start(same);
  const std::string metrics = content_of(options.metrics);
  CHECK(metrics.starts_with("{\"step\":0,\"before\":1}\n{\"step\":1,"));
  options.resume = "2";  // what follows its second line is repeated
  CHECK_THROWS_WITH(start(other), ContainsSubstring("samples_per_epoch"));
  CHECK(content_of(options.metrics) == metrics);
  options.metrics = folder.path / "new.jsonl";
  CHECK_THROWS_WITH(start(other), ContainsSubstring("samples_per_epoch"));
  CHECK_FALSE(std::filesystem::exists(options.metrics));
  start(same);
  CHECK(content_of(options.metrics).starts_with("{\"step\":2,\"before\":1}\n{\"step\":3,"));
}

TEST_CASE("reports of a run without a loop are in its metrics") {
  const RunFolder folder;
  std::filesystem::create_directories(folder.path);
  run_ranks(2, [&](const Group& world) {
    Run run(world, {.metrics = folder.path / "metrics.jsonl"});
    PointNet net(run.context());
    optim::AdamW<Float32> optimizer(net);
    run.add(net, optimizer);
    run.load();
    run.report({{"loss", 3}});
  });
  CHECK(content_of(folder.path / "metrics.jsonl") == "{\"step\":0,\"loss\":3}\n");
}

TEST_CASE("two jobs on one directory: the second is refused, and the first one's files stay as they are") {
  const RunFolder folder;
  std::filesystem::create_directories(folder.path);
  const trainer::Options options{.until = Steps{4},
                                 .batch_size = 12,
                                 .checkpoints = {.directory = folder.path},
                                 .checkpoint_every = Steps{1},
                                 .metrics = folder.path / "metrics.jsonl",
                                 .configuration = "first\n"};
  run_ranks(1, [&](const Group& world) {
    Run run(world, options);
    train(run, [&](Run& first, const PointNet&) {
      if (first.done() != 3) return;
      setenv("TRIREME_JOB_ID", "second", 1);
      trainer::Options of_second = options;
      of_second.configuration = "second\n";
      of_second.resume = "none";
      expect_error(
          ErrorCode::invalid_argument,
          [&] {
            Run second(world, of_second);
            train(second);
          },
          "another job saves its checkpoints there");
      unsetenv("TRIREME_JOB_ID");
      expect(content_of(folder.path / "options.toml") == "first\n", "the options of the first");
    });
  });
  CHECK(checkpoint::committed_steps(folder.path) == std::vector<std::int64_t>{2, 3, 4});
  std::int64_t lines = 0;
  std::ifstream metrics(folder.path / "metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) CHECK(line.starts_with("{\"step\":" + std::to_string(++lines) + ","));
  CHECK(lines == 4);
}

TEST_CASE("a job that looked for the newest checkpoint before another one saved is refused") {
  const RunFolder folder;
  run_ranks(1, [&](const Group& world) {
    const trainer::Options options{.until = Steps{2}, .batch_size = 12, .checkpoints = {.directory = folder.path}};
    Run late(world, options);
    {
      Run first(world, options);
      train(first);
    }
    expect_error(
        ErrorCode::io, [&] { train(late); }, "another job has saved checkpoints there since");
  });
  CHECK(checkpoint::committed_steps(folder.path) == std::vector<std::int64_t>{2});
}

TEST_CASE("a loop that trains nothing saves nothing in the directory of a training") {
  const RunFolder folder;
  run_ranks(2, [&](const Group& world) {
    trainer::Options options{.until = Steps{2}, .batch_size = 12, .checkpoints = {.directory = folder.path}};
    {
      Run run(world, options);
      train(run);
    }
    world.barrier();
    options.until = Steps{4};
    Run evaluation(world, options);
    PointNet net(evaluation.context());
    evaluation.add(net);
    const PointLoader loader(evaluation.batch());
    for (auto& step : evaluation.steps(loader)) {
      for (const auto& batch : step.batches()) net.loss(net.forward(batch), batch);
    }
  });
  CHECK(checkpoint::committed_steps(folder.path) == std::vector<std::int64_t>{2});
}

TEST_CASE("a text that no checkpoint holds is told before the first step") {
  const RunFolder folder;
  run_ranks(1, [&](const Group& world) {
    Run run(world, {.until = Steps{2}, .batch_size = 12, .checkpoints = {.directory = folder.path}});
    run.describe("data", "caf\xe9.txt");
    int steps = 0;
    expect_error(
        ErrorCode::invalid_argument, [&] { train(run, [&](const auto&...) { ++steps; }); }, "data");
    expect(steps == 0, "{} steps were made", steps);
  });
}

TEST_CASE("an evaluation leaves the metrics of the training") {
  const RunFolder folder;
  std::filesystem::create_directories(folder.path);
  run_ranks(2, [&](const Group& world) {
    trainer::Options options{.until = Steps{4},
                             .batch_size = 12,
                             .checkpoints = {.directory = folder.path, .asynchronous = false},
                             .checkpoint_every = Steps{2},
                             .metrics = folder.path / "metrics.jsonl"};
    const auto evaluate = [&] {
      Run evaluation(world, options);
      PointNet other(evaluation.context());
      evaluation.add(other);
      evaluation.report({{"test_loss", evaluation.evaluate(other, TestPoints())}});
    };
    {
      Run run(world, options);
      train(run, [&](Run& first, const PointNet&) {
        if (first.done() == 3) evaluate();
      });
    }
    world.barrier();
    const std::string metrics = content_of(options.metrics);
    expect(std::ranges::count(metrics, '\n') == 4, "a line of each step: {}", metrics);
    world.barrier();
    evaluate();
    world.barrier();
    expect(content_of(options.metrics) == metrics, "the metrics of the training");
    world.barrier();
    options.metrics = folder.path / "evaluation.jsonl";
    evaluate();
    world.barrier();
    expect(content_of(options.metrics).starts_with("{\"step\":4,\"test_loss\":"), "its own in another file");
  });
}

namespace {

data::Table table_of(std::int64_t rows, float first) {
  data::TableContent content{.feature_names = {"x", "y"}};
  for (std::int64_t row = 0; row < rows; ++row) {
    content.features.insert(content.features.end(), {row == 0 ? first : static_cast<float>(row), 1});
    content.targets.push_back(static_cast<float>(row));
  }
  return data::Table(content);
}

struct LineNet : nn::Module<Float32> {
  using Module::Module;
  nn::Linear<Float32> output{*this, "output", {.in = 2, .out = 1}};
};

}  // namespace

TEST_CASE("a run goes on with the same data alone, unless it is told otherwise") {
  const RunFolder folder;
  const auto train_on = [&](const data::Table& table, std::int64_t steps, bool allow, const std::filesystem::path& described,
                            bool looks_first) {
    std::vector<std::string> notes;
    set_log_sink([&](Severity, std::string_view line) { notes.emplace_back(line); });
    run_ranks(2, [&](const Group& world) {
      Run run(world, {.until = Steps{steps},
                      .batch_size = 4,
                      .checkpoints = {.directory = folder.path / "run"},
                      .allow_other_data = allow});
      LineNet net(run.context());
      optim::AdamW<Float32> optimizer(net);
      run.add(net, optimizer);
      if (!described.empty()) run.describe_data(described);
      if (looks_first) run.load();
      const data::Loader rows(table, run.batch());
      for (auto& step : run.steps(rows)) {
        for (const auto& batch : step.batches()) {
          step.backward(batch, [&] { return mse_loss(net.output.forward(Variable<float>(batch.x)), batch.targets); });
        }
        step.update(optimizer);
      }
    });
    set_log_sink({});
    return notes;
  };
  train_on(table_of(20, 0), 1, false, {}, false);
  train_on(table_of(20, 0), 2, false, {}, false);
  for (const bool looks_first : {false, true}) {
    CHECK_THROWS_WITH(train_on(table_of(20, 7), 3, false, {}, looks_first),
                      ContainsSubstring("made with another data_content") && ContainsSubstring("20 rows of 2 features") &&
                          ContainsSubstring("--allow-other-data"));
    CHECK_THROWS_WITH(train_on(table_of(16, 0), 3, false, {}, looks_first), ContainsSubstring("made with another "));
  }
  const auto notes = train_on(table_of(16, 0), 3, true, {}, false);
  CHECK(std::ranges::count(notes, "note: samples_per_epoch was 20 in the checkpoint, is 16 now") == 1);

  std::filesystem::remove_all(folder.path / "run");
  const std::filesystem::path file = folder.path / "rows.csv";
  std::ofstream(file) << "1,2\n";
  train_on(table_of(20, 0), 1, false, file, false);
  std::ofstream(file) << "1,3\n";
  CHECK_THROWS_WITH(train_on(table_of(20, 0), 2, false, file, false),
                    ContainsSubstring("another data_content") && ContainsSubstring("4 bytes, digest"));
  std::ofstream(file) << "1,2\n";
  train_on(table_of(20, 0), 2, false, file, false);
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
