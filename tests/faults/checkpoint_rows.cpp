#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include "checkpoint/layouts.hpp"
#include "checkpoint/sample_runs.hpp"
#include "faults/rows.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/testing/ranks.hpp"

namespace trireme::tests {
namespace {

using checkpoint::Checkpoints;
using test::load_difference;
using test::options_on;
using test::SampleState;
using test::SimulatedFileSystem;
using testing::run_ranks;
using System = std::shared_ptr<SimulatedFileSystem>;

void require_loads(const System& system, int ranks, int layout, std::int64_t step) {
  run_ranks(ranks, [&](const Group& world) {
    const std::string difference = load_difference(world, system, layout, step);
    require(difference.empty(), "step {}: {}", step, difference);
  });
}

// Four saves by two ranks; `committed` is the last one that rank 0 considers done.
void save_four(const System& system, std::int64_t& committed) {
  committed = 0;
  run_ranks(2, [&](const Group& world) {
    SampleState sample(world.rank(), world.size(), 2);
    Checkpoints checkpoints(world, options_on(system));
    for (const std::int64_t step : {1, 2, 3, 4}) {
      sample.fill(static_cast<std::uint64_t>(step));
      checkpoints.save(step, sample.state());
      if (world.rank() == 0) committed = step;
    }
  });
}

void expect_survived(const System& found, std::int64_t committed) {
  const auto steps = checkpoint::committed_steps("/run", *found);
  const std::int64_t newest = steps.empty() ? 0 : steps.back();
  require(newest == committed || newest == committed + 1, "step {} was committed, the newest is {}", committed, newest);
  if (newest > 0) require_loads(found, 1, 0, newest);
  run_ranks(1, [&](const Group& world) { test::save_sample(world, found, 0, newest + 1); });
  require_loads(found, 1, 0, newest + 1);
}

// Three saves by three ranks: the errors, which must be the same on all, and the log lines about what could not be removed.
std::string save_three(const System& system, bool asynchronous) {
  std::vector<std::string> errors(3);
  std::string logged;
  std::mutex mutex;
  set_log_sink([&](Severity, std::string_view line) {
    const std::lock_guard lock(mutex);
    logged += fmt::format("rank 0: {}\n", line);
  });
  run_ranks(3, [&](const Group& world) {
    SampleState sample(world.rank(), world.size(), 3);
    Checkpoints checkpoints(world, options_on(system, asynchronous));
    for (const std::int64_t step : {1, 2, 3}) {
      sample.fill(static_cast<std::uint64_t>(step));
      try {
        checkpoints.save(step, sample.state());
        checkpoints.finish();
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(world.rank())] += error.what();
      }
      world.barrier();
    }
  });
  set_log_sink({});
  require(errors[0] == errors[1] && errors[0] == errors[2], "the ranks have the errors \"{}\"", fmt::join(errors, "\", \""));
  return errors[0] + logged;
}

void expect_told(std::int64_t call, int error_number, bool asynchronous) {
  constexpr std::chrono::seconds limit{5};
  const auto begin = std::chrono::steady_clock::now();
  const auto system = std::make_shared<SimulatedFileSystem>();
  system->fail_at(call, error_number);
  const std::string text = save_three(system, asynchronous);
  require(std::chrono::steady_clock::now() - begin < limit, "it takes longer than {} s", limit.count());
  for (const std::string& part : {std::string(std::strerror(error_number)), system->failed_call(), std::string("rank ")}) {
    require(text.find(part) != std::string::npos, "\"{}\" does not say \"{}\"", text, part);
  }
  const auto steps = checkpoint::committed_steps("/run", *system);
  require(steps.size() >= 2, "{} checkpoints are left", steps.size());
  require_loads(system, 2, 1, steps.back());
}

// A checkpoint that was damaged in one place.
class Damage {
 public:
  explicit Damage(SimulatedFileSystem& system) : system_(system), files_(system.files()) {
    for (const auto& file : files_) before_.push_back(system.content(file));
  }
  ~Damage() {
    for (std::size_t file = 0; file < files_.size(); ++file) {
      if (file == missing_) system_.create(files_[file]);
      system_.content(files_[file]) = before_[file];
    }
  }
  Damage(const Damage&) = delete;
  Damage& operator=(const Damage&) = delete;

  std::string anywhere(std::mt19937_64& random) {
    do {
      make(random);
    } while (!different());
    return what_;
  }
  std::string at_end(std::size_t file, bool longer) {
    auto& content = system_.content(files_[file]);
    longer ? content.push_back(std::byte{' '}) : content.pop_back();
    return fmt::format("a byte {} at the end of {}", longer ? "more" : "less", files_[file].string());
  }

 private:
  void make(std::mt19937_64& random) {
    const auto below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
    const std::size_t file = below(files_.size());
    auto& content = system_.content(files_[file]);
    const std::size_t size = content.size();
    const std::string name = files_[file].name();
    switch (std::discrete_distribution<int>({80, 10, 6, 2, 2})(random)) {
      case 0: {
        const std::size_t at = below(size);
        content[at] ^= static_cast<std::byte>(1 << below(8));
        what_ = fmt::format("a flipped bit of byte {} of {}", at, name);
        return;
      }
      case 1:
        content.resize(below(size));
        what_ = fmt::format("{} cut off at {}", name, content.size());
        return;
      case 2:
        content.resize(size + 1 + below(4096), static_cast<std::byte>(below(256)));
        what_ = fmt::format("{} bytes more in {}", content.size() - size, name);
        return;
      case 3: {
        const std::size_t other = below(files_.size());
        std::swap(content, system_.content(files_[other]));
        what_ = fmt::format("{} and {} swapped", name, files_[other].name());
        return;
      }
      default:
        missing_ = file;
        system_.remove_all(files_[file]);
        what_ = fmt::format("{} missing", name);
    }
  }

  bool different() {
    if (missing_ < files_.size()) return true;
    for (std::size_t file = 0; file < files_.size(); ++file) {
      if (system_.content(files_[file]) != before_[file]) return true;
    }
    return false;
  }

  SimulatedFileSystem& system_;
  std::vector<Location> files_;
  std::vector<std::vector<std::byte>> before_;
  std::size_t missing_ = static_cast<std::size_t>(-1);
  std::string what_;
};

// By its step, which is an error too where the manifest is missing and there is no checkpoint.
void expect_refused(const System& system) {
  const bool committed = !checkpoint::committed_steps("/run", *system).empty();
  run_ranks(2, [&](const Group& world) {
    SampleState sample(world.rank(), world.size(), 4);
    sample.fill(99);
    Checkpoints checkpoints(world, options_on(system));
    bool refused = false;
    try {
      checkpoints.load(5, sample.state());
    } catch (const Error& error) {
      refused = !committed || error.code() == ErrorCode::corrupt_file || error.code() == ErrorCode::io;
    }
    require(refused, "it was not noticed");
    require(sample.difference(99).empty(), "{} has changed", sample.difference(99));
  });
}

}  // namespace

Row lose_power(Extent extent) {
  Row row("kill", "power lost at each call to a simulated file system; any part of what was not synced is lost, 2 ranks");
  std::int64_t committed = 0;
  const auto undisturbed = std::make_shared<SimulatedFileSystem>();
  save_four(undisturbed, committed);
  const std::uint64_t seeds = extent == Extent::full ? 4 : 1;
  for (std::int64_t call = 1; call <= undisturbed->calls(); ++call) {
    const auto system = std::make_shared<SimulatedFileSystem>();
    system->lose_power_at(call);
    bool lost = false;
    try {
      save_four(system, committed);
    } catch (const std::exception&) {
      lost = true;
    }
    for (const double keep : {0.0, 0.3, 0.5, 0.8, 1.0}) {
      for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        row.attempt(fmt::format("power lost at call {}, {} of the changes kept", call, keep), [&] {
          require(lost, "the job went on");
          expect_survived(system->after_power_loss(keep, static_cast<std::uint64_t>(call) + seed * 1000), committed);
        });
      }
    }
  }
  return row;
}

Row fail_calls(Extent extent) {
  Row row("I/O", fmt::format("{}one call to the file system fails: reserve, write, sync, close, rename, ..., 3 ranks",
                             extent == Extent::full ? "ENOSPC and EIO: " : "ENOSPC: "));
  for (const bool asynchronous : {false, true}) {
    const auto undisturbed = std::make_shared<SimulatedFileSystem>();
    row.attempt("nothing fails", [&] { require(save_three(undisturbed, asynchronous).empty(), "there is an error"); });
    for (const int error_number : {ENOSPC, EIO}) {
      if (error_number == EIO && extent == Extent::brief) continue;
      for (std::int64_t call = 1; call <= undisturbed->calls(); ++call) {
        row.attempt(fmt::format("call {} fails, {}", call, std::strerror(error_number)),
                    [&] { expect_told(call, error_number, asynchronous); });
      }
    }
  }
  return row;
}

Row damage_files(Extent extent) {
  Row row("corruption",
          "one place of a checkpoint damaged: a bit, a cut, more bytes, swapped or missing files; nothing loaded");
  const auto system = std::make_shared<SimulatedFileSystem>();
  run_ranks(2, [&](const Group& world) { test::save_sample(world, system, 1, 5); });
  std::mt19937_64 random(3);
  const std::size_t ends = 2 * system->files().size();
  for (std::size_t number = 0; number < (extent == Extent::full ? 2000 : 200); ++number) {
    Damage damage(*system);
    const std::string what = number < ends ? damage.at_end(number / 2, number % 2 == 0) : damage.anywhere(random);
    row.attempt(what, [&] { expect_refused(system); });
  }
  require_loads(system, 2, 4, 5);  // what all of this was done to is whole
  return row;
}

}  // namespace trireme::tests
