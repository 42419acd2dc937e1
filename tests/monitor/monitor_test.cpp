#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <thread>

#include "catch.hpp"
#include "monitor/progress_line.hpp"
#include "trireme/core/error.hpp"
#include "trireme/monitor/registry.hpp"
#include "trireme/monitor/sink.hpp"

using namespace trireme;
using namespace trireme::monitor;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("monitor_test." + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

std::string content_of(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

Snapshot snapshot_of(std::int64_t step, Registry& registry) { return {.step = step, .metrics = registry.take()}; }

}  // namespace

TEST_CASE("a registry tells what changed since it was last asked") {
  Registry registry;
  registry.counter("sent_bytes").add(10);
  registry.gauge("loss").set(2.5);
  registry.histogram("step_seconds").observe(0.5);
  CHECK(&registry.gauge("loss") == &registry.gauge("loss"));
  auto first = Snapshot{.metrics = registry.take()};
  CHECK(first.metrics.size() == 3);
  CHECK(first.metrics[0].name == "sent_bytes");  // in the order of the first calls
  CHECK(first.find("sent_bytes")->increase == 10);
  CHECK(first.find("loss")->changed);
  CHECK(first.find("step_seconds")->histogram.count == 1);
  CHECK(first.find("nothing") == nullptr);
  registry.counter("sent_bytes").add(5);
  auto second = Snapshot{.metrics = registry.take()};
  CHECK(second.find("sent_bytes")->value == 15);
  CHECK(second.find("sent_bytes")->increase == 5);
  CHECK(!second.find("loss")->changed);
  CHECK(second.find("loss")->value == 2.5);
  CHECK(!second.find("step_seconds")->changed);
  registry.gauge("loss").set(2.5);  // the same value, told again
  CHECK(Snapshot{.metrics = registry.take()}.find("loss")->changed);
  Counter& sent = registry.counter("sent_bytes");
  registry.restart();
  CHECK(registry.take().empty());
  sent.add(3);
  const auto anew = Snapshot{.metrics = registry.take()};
  CHECK(anew.metrics.size() == 1);
  CHECK(anew.find("sent_bytes")->value == 3);
}

TEST_CASE("a registry refuses what is no name, and a name of another kind") {
  Registry registry;
  for (const char* name : {"", "loss!", "a b", "step", "\"", "a,b", "\xc3\xa4"}) {
    INFO(name);
    CHECK_THROWS_AS(registry.gauge(name), Error);
  }
  registry.gauge("generator.loss_2");
  CHECK_THROWS_WITH(registry.counter("generator.loss_2"), ContainsSubstring("is a gauge, not a counter"));
  CHECK_THROWS_AS(registry.counter("n").add(-1), Error);
  CHECK_THROWS_AS(registry.counter("n").add(std::nan("")), Error);
  CHECK_THROWS_AS(registry.counter("n").add(std::numeric_limits<double>::infinity()), Error);
}

TEST_CASE("each thread has a registry of its own") {
  Registry* other = nullptr;
  std::thread([&other] { other = &Registry::current(); }).join();
  CHECK(&Registry::current() == &Registry::current());
  CHECK(other != &Registry::current());
}

TEST_CASE("quantiles of a histogram") {
  Histogram histogram;
  CHECK(std::isnan(histogram.quantile(0.5)));
  for (int i = 1; i <= 1000; ++i) histogram.observe(i);
  histogram.observe(std::nan(""));
  CHECK(histogram.count() == 1000);
  CHECK(std::abs(histogram.quantile(0.5) - 500) < 0.05 * 500);
  CHECK(std::abs(histogram.quantile(0.95) - 950) < 0.05 * 950);
  CHECK(histogram.quantile(0) >= 1);
  CHECK(histogram.quantile(1) <= 1000);
  CHECK_THROWS_AS(histogram.quantile(1.5), Error);
  Histogram around_zero;
  for (const double value : {-100.0, -1.0, 0.0, 1.0, 100.0}) around_zero.observe(value);
  CHECK(around_zero.quantile(0.5) == 0);
  CHECK(around_zero.quantile(0.2) < -90);
  CHECK(around_zero.quantile(1) > 90);
  Histogram extreme;
  for (const double value : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max()}) {
    extreme.observe(value);
  }
  CHECK(extreme.count() == 4);
  CHECK(extreme.quantile(0.75) > 1e300);
}

TEST_CASE("JSON lines: what changed, one object a line") {
  const Folder folder;
  const fs::path path = folder.path / "metrics.jsonl";
  Registry registry;
  {
    const auto sink = json_lines(path);
    registry.gauge("loss").set(0.1);
    registry.counter("sent_bytes").add(1048576);
    sink->write(snapshot_of(0, registry));
    registry.gauge("loss").set(std::nan(""));
    sink->write(snapshot_of(1, registry));
    registry.histogram("seconds").observe(2);
    sink->write(snapshot_of(2, registry));
  }
  CHECK(content_of(path) ==
        "{\"step\":0,\"loss\":0.1,\"sent_bytes\":1048576}\n"
        "{\"step\":1,\"loss\":null}\n"
        "{\"step\":2,\"seconds\":{\"count\":1,\"sum\":2,\"minimum\":2,\"maximum\":2,\"median\":2,\"quantile_95\":2}}\n");
}

TEST_CASE("a further snapshot of a step joins its line") {
  const Folder folder;
  for (const bool is_csv : {false, true}) {
    const fs::path path = folder.path / (is_csv ? "joined.csv" : "joined.jsonl");
    const auto sink = is_csv ? csv(path) : json_lines(path);
    Registry registry;
    registry.gauge("loss").set(3);
    sink->write(snapshot_of(1, registry));
    registry.gauge("loss").set(2);
    registry.counter("n").add(4);
    sink->write(snapshot_of(2, registry));
    registry.gauge("accuracy").set(0.25);
    registry.counter("n").add(1);
    sink->write(snapshot_of(2, registry));
    registry.gauge("accuracy").set(0.5);
    sink->write(snapshot_of(2, registry));
    registry.gauge("loss").set(1);
    sink->write(snapshot_of(3, registry));
    CHECK(content_of(path) == (is_csv ? "step,loss,n,accuracy\n1,3,,\n2,2,5,0.5\n3,1,,\n"
                                      : "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":2,\"n\":5,\"accuracy\":0.5}\n"
                                        "{\"step\":3,\"loss\":1}\n"));
    // A start that finds all steps done reports its results again.
    const auto again = is_csv ? csv(path, {.done = 2}) : json_lines(path, {.done = 2});
    Registry other;
    other.counter("n").add(3);
    other.gauge("accuracy").set(0.75);
    other.histogram("seconds").observe(2);
    again->write(snapshot_of(2, other));
    const auto third = is_csv ? csv(path, {.done = 2}) : json_lines(path, {.done = 2});
    other.gauge("accuracy").set(0.5);
    third->write(snapshot_of(2, other));
    CHECK(content_of(path) ==
          (is_csv
               ? "step,loss,n,accuracy,seconds\n1,3,,,\n2,2,8,0.5,2\n"
               : "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":2,\"n\":8,\"accuracy\":0.5,\"seconds\":{\"count\":1,\"sum\":2,"
                 "\"minimum\":2,\"maximum\":2,\"median\":2,\"quantile_95\":2}}\n"));
  }
}

TEST_CASE("a run that goes on repeats no line of its file") {
  const Folder folder;
  const fs::path path = folder.path / "metrics.jsonl";
  std::ofstream(path)
      << "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":2}\nno metrics\n{\"step\":3,\"loss\":1}\n{\"step\":4,\"lo";
  Registry registry;
  registry.gauge("loss").set(9);
  json_lines(path, {.done = 2})->write(snapshot_of(3, registry));
  CHECK(content_of(path) == "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":2}\n{\"step\":3,\"loss\":9}\n");
  registry.gauge("loss").set(8);
  json_lines(path)->write(snapshot_of(1, registry));  // a new run
  CHECK(content_of(path) == "{\"step\":1,\"loss\":8}\n");
}

TEST_CASE("CSV: a column for each metric, also for one that comes later") {
  const Folder folder;
  const fs::path path = folder.path / "metrics.csv";
  Registry registry;
  {
    const auto sink = csv(path);
    registry.gauge("loss").set(3);
    sink->write(snapshot_of(0, registry));
    registry.gauge("accuracy").set(0.5);
    sink->write(snapshot_of(1, registry));
    registry.gauge("loss").set(std::nan(""));
    sink->write(snapshot_of(2, registry));
  }
  CHECK(content_of(path) == "step,loss,accuracy\n0,3,\n1,,0.5\n2,nan,\n");
  {
    const auto sink = csv(path, {.done = 1});
    Registry other;
    other.gauge("accuracy").set(1);
    other.gauge("loss").set(2);
    sink->write(snapshot_of(2, other));
  }
  CHECK(content_of(path) == "step,loss,accuracy\n0,3,\n1,,0.5\n2,2,1\n");
  std::ofstream(path) << "name,price\napple,3\n";
  for (const std::int64_t done : {0, 1}) {
    CHECK_THROWS_WITH(csv(path, {.done = done}), ContainsSubstring("metrics.csv holds something else"));
    CHECK_THROWS_WITH(json_lines(path, {.done = done}), ContainsSubstring("metrics.csv holds something else"));
  }
  CHECK(content_of(path) == "name,price\napple,3\n");
}

TEST_CASE("a file that holds no metrics stays as it is, also one line, unfinished or like a metric's") {
  const Folder folder;
  for (const char* text : {"important", "{", "\n", "{\"step\":\"one\"}", "{\"step\":1.5}\n", "{\"steps\":1}\n",
                           "steps,loss\n1,2\n", "step size,loss\n"}) {
    INFO(text);
    const fs::path path = folder.path / "notes";
    std::ofstream(path) << text;
    for (const std::int64_t done : {0, 1}) {
      CHECK_THROWS_WITH(json_lines(path, {.done = done}), ContainsSubstring("holds something else than the metrics"));
      CHECK_THROWS_WITH(csv(path, {.done = done}), ContainsSubstring("holds something else than the metrics"));
    }
    CHECK(content_of(path) == text);
  }
  for (const char* text : {"", "{\"step\":0,\"lo", "{\"step\":10"}) {  // what a killed run has left
    const fs::path path = folder.path / "metrics";
    std::ofstream(path) << text;
    json_lines(path);
    CHECK(content_of(path).empty());
  }
}

TEST_CASE("a file that can't be written is an error that names it") {
  CHECK_THROWS_WITH(json_lines("/no/such/folder/metrics.jsonl"), ContainsSubstring("/no/such/folder/metrics.jsonl"));
  CHECK_THROWS_WITH(csv("/no/such/folder/metrics.csv")->write({}), ContainsSubstring("/no/such/folder/metrics.csv"));
  Registry registry;
  for (const auto& make : {json_lines, csv}) {
    const auto sink = make("/dev/full", {.done = 3});
    for (int time = 0; time < 2; ++time) {
      registry.gauge("loss").set(1);
      CHECK_THROWS_WITH(sink->write(snapshot_of(1, registry)), ContainsSubstring("/dev/full"));
    }
  }
  CHECK(fs::is_character_file("/dev/full"));
}

// A limit of the process takes the place of a full disk: both cut a write in its middle.
TEST_CASE("a file that is full holds whole lines, and goes on when there is room") {
  const Folder folder;
  std::signal(SIGXFSZ, SIG_IGN);
  for (const bool is_csv : {false, true}) {
    const fs::path path = folder.path / (is_csv ? "full.csv" : "full.jsonl");
    const auto sink = is_csv ? csv(path) : json_lines(path);
    Registry registry;
    const auto write = [&](std::int64_t step) {
      registry.gauge("loss").set(0.125);
      if (step >= 4) registry.gauge("accuracy").set(0.5);
      sink->write(snapshot_of(step, registry));
    };
    write(1);
    write(2);
    rlimit room{};
    getrlimit(RLIMIT_FSIZE, &room);
    rlimit full = room;
    full.rlim_cur = fs::file_size(path) + 5;
    setrlimit(RLIMIT_FSIZE, &full);
    for (const std::int64_t step : {3, 4, 5}) CHECK_THROWS_WITH(write(step), ContainsSubstring(path.string()));
    setrlimit(RLIMIT_FSIZE, &room);
    write(6);
    CHECK(content_of(path) == (is_csv ? "step,loss,accuracy\n1,0.125,\n2,0.125,\n6,0.125,0.5\n"
                                      : "{\"step\":1,\"loss\":0.125}\n{\"step\":2,\"loss\":0.125}\n"
                                        "{\"step\":6,\"loss\":0.125,\"accuracy\":0.5}\n"));
  }
  std::signal(SIGXFSZ, SIG_DFL);
}

namespace {

// Half a second a step, ten samples each, of 100 steps.
struct Watched {
  ProgressLine line{{}};
  Registry registry;
  double seconds = 0;
  std::int64_t step = 0;
  std::int64_t last = 100;

  void take(double step_seconds = 0.5) {
    seconds += step_seconds;
    registry.counter("samples").add(10);
    registry.gauge("loss").set(1.23456);
    Snapshot snapshot = snapshot_of(++step, registry);
    snapshot.steps = 100;
    snapshot.share = static_cast<double>(step) / 100;
    snapshot.last = step == last;
    line.add(snapshot, ProgressLine::Time(seconds));
  }
};

}  // namespace

TEST_CASE("a progress line") {
  Watched run;
  run.take(20);  // a first step that compiles, tunes and allocates
  CHECK(run.line.plain() == "step 1/100  loss 1.2346");
  for (int i = 1; i < 10; ++i) run.take();
  CHECK(run.line.plain() == "step 10/100  loss 1.2346  20 samples/s  00:00:45 left");
  CHECK(run.line.on_terminal(200) == "[##......................] step 10/100  loss 1.2346  20 samples/s  00:00:45 left");
  for (const int width : {79, 60, 40, 10, 1, 0, -3}) {
    CHECK(run.line.on_terminal(width).size() <= static_cast<std::size_t>(std::max(width, 1)));
  }
  CHECK(run.line.on_terminal(60) == run.line.plain());
}

TEST_CASE("the rate is that of the last ten seconds") {
  Watched run;
  for (int i = 0; i < 20; ++i) run.take();
  for (int i = 0; i < 21; ++i) run.take(1);
  CHECK_THAT(run.line.plain(), ContainsSubstring("10 samples/s"));
}

TEST_CASE("when a progress line is due") {
  Watched run;
  run.take();
  CHECK(run.line.due(true));
  run.line.shown();
  run.take(0.05);
  CHECK(!run.line.due(true));
  run.take(0.06);
  CHECK(run.line.due(true));
  CHECK(!run.line.due(false));
  run.take(10);
  CHECK(run.line.due(false));
  run.line.shown();
  for (int i = 0; i < 30; ++i) {
    run.take(20);
    run.line.shown();
  }
  run.take(30);
  CHECK(!run.line.due(false));  // after ten minutes
  while (run.step < 100) run.take(0.01);
  CHECK(run.line.due(false));  // the last step
  Watched stopped;             // by a signal, in the middle
  stopped.last = 10;
  for (int i = 0; i < 9; ++i) stopped.take();
  stopped.line.shown();
  stopped.take(0.01);
  CHECK(stopped.line.due(false));
  CHECK_THAT(stopped.line.plain(), !ContainsSubstring("00:00:00 left"));
}

TEST_CASE("progress without a known end") {
  ProgressLine line({.unit = "tokens", .shown = {"generator.loss"}});
  Registry registry;
  registry.counter("tokens").add(5);
  registry.gauge("generator.loss").set(std::nan(""));
  line.add({.step = 7, .epoch = 1.256, .share = std::nan(""), .metrics = registry.take()}, ProgressLine::Time(1));
  CHECK(line.plain() == "step 7  epoch 1.26  generator.loss nan");
  registry.counter("tokens").add(5);
  line.add({.step = 8, .share = 7, .metrics = registry.take()}, ProgressLine::Time(3));
  CHECK_THAT(line.plain(), ContainsSubstring("2.50 tokens/s"));
}

TEST_CASE("elsewhere than on a terminal a line now and then, and all notes") {
  const Folder folder;
  const fs::path path = folder.path / "out";
  {
    std::FILE* file = std::fopen(path.c_str(), "w");
    const auto sink = terminal({.stream = file});
    Registry registry;
    registry.gauge("loss").set(1);
    for (int step = 1; step <= 5; ++step) {
      Snapshot snapshot = snapshot_of(step, registry);
      snapshot.steps = 5;
      snapshot.share = step / 5.0;
      snapshot.last = step == 5;
      sink->write(snapshot);
    }
    sink->note("checkpoint of step 5 saved");
    std::fclose(file);
  }
  const std::string text = content_of(path);
  CHECK(text.starts_with("step 1/5  loss 1.0000\nstep 5/5  loss 1.0000"));
  CHECK(text.ends_with("checkpoint of step 5 saved\n"));
  CHECK(text.find("step 2/5") == std::string::npos);
}
