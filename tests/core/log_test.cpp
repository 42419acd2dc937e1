#include "trireme/core/log.hpp"

#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"

using namespace trireme;

namespace {

// Back to standard error and all lines at its end.
struct Restored {
  Severity level = log_level();
  ~Restored() {
    set_log_sink({});
    set_log_level(level);
  }
};

using Lines = std::vector<std::pair<Severity, std::string>>;

LogSink into(Lines& lines) {
  return [&lines](Severity severity, std::string_view line) { lines.emplace_back(severity, line); };
}

}  // namespace

TEST_CASE("an application takes the lines") {
  const Restored restored;
  Lines lines;
  set_log_sink(into(lines));
  log(Severity::warning, "{} of {}: {:.1f}", 1, "two", 3.0);
  log(Severity::error, "{{}}");
  CHECK(lines == Lines{{Severity::warning, "1 of two: 3.0"}, {Severity::error, "{}"}});
  Lines others;
  set_log_sink(into(others));
  log(Severity::info, "here");
  CHECK(lines.size() == 2);
  CHECK(others.size() == 1);
}

TEST_CASE("less severe lines are left out") {
  const Restored restored;
  Lines lines;
  set_log_sink(into(lines));
  for (const Severity least : {Severity::debug, Severity::info, Severity::warning, Severity::error}) {
    set_log_level(least);
    lines.clear();
    for (const Severity severity : {Severity::debug, Severity::info, Severity::warning, Severity::error}) {
      log(severity, "{}", name_of(severity));
    }
    CHECK(lines.size() == 4 - static_cast<std::size_t>(least));
    CHECK(lines.front().second == name_of(least));
  }
}

TEST_CASE("a sink may throw, log and be replaced while it is called") {
  const Restored restored;
  set_log_sink([](Severity, std::string_view) { throw std::runtime_error("no"); });
  log(Severity::info, "shown on standard error, as the sink of this test throws");
  int calls = 0;
  set_log_sink([&](Severity severity, std::string_view) {
    ++calls;
    log(severity, "shown on standard error, as a sink logs it");
    set_log_sink([&](Severity, std::string_view) { calls += 10; });
  });
  log(Severity::info, "once");
  CHECK(calls == 1);
  log(Severity::info, "to the next");
  CHECK(calls == 11);
}

TEST_CASE("threads log at once") {
  const Restored restored;
  std::atomic<int> lines = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&lines, thread] {
      for (int line = 0; line < 200; ++line) {
        if (thread == 0) set_log_sink([&lines](Severity, std::string_view) { ++lines; });
        if (thread == 0 || line > 0) log(Severity::debug, "left out");
        if (thread == 0) log(Severity::info, "counted");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(lines == 200);
}
