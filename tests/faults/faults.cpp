// Causes faults in training and checks their outcome, one row for each kind of fault.
//   faults short|full [ROW...]
// The exit code is 0 where every row passed.

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <exception>
#include <set>
#include <string>
#include <string_view>

#include "faults/rows.hpp"

using namespace trireme::tests;

namespace {

struct Entry {
  std::string_view name;
  Row (*run)(Extent);
};

constexpr std::array entries = {
    Entry{"kill_at_calls_of_one", kill_at_calls_of_one},
    Entry{"kill_at_calls_of_four", kill_at_calls_of_four},
    Entry{"kill_at_random", kill_at_random},
    Entry{"lose_power", lose_power},
    Entry{"fail_calls", fail_calls},
    Entry{"damage_files", damage_files},
    Entry{"change_ranks", change_ranks},
    Entry{"inject_non_finite", inject_non_finite},
    Entry{"turn_bits", turn_bits},
    Entry{"preempt", preempt},
    Entry{"restart", restart},
};

int usage() {
  fmt::print(stderr, "usage: faults short|full [ROW...]; the rows are");
  for (const Entry& entry : entries) fmt::print(stderr, " {}", entry.name);
  fmt::print(stderr, "\n");
  return 2;
}

bool passes(const Entry& entry, Extent extent) {
  try {
    const Row row = entry.run(extent);
    fmt::print("{}\n", row.str());
    std::fflush(stdout);
    return row.passed();
  } catch (const std::exception& error) {
    fmt::print("FAILED: {} could not run: {}\n", entry.name, error.what());
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return usage();
  const std::string_view extent = argv[1];
  if (extent != "short" && extent != "full") return usage();
  std::set<std::string_view> chosen(argv + 2, argv + argc);
  const bool all = chosen.empty();
  fmt::print("| area | what was done | asked | seen | |\n|---|---|---|---|---|\n");
  bool passed = true;
  for (const Entry& entry : entries) {
    if (all || chosen.erase(entry.name) > 0) passed &= passes(entry, extent == "full" ? Extent::full : Extent::brief);
  }
  return !chosen.empty() ? usage() : passed ? 0 : 1;
}
