#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "trireme/testing/ranks.hpp"

namespace trireme::tests {

// The results of problems(world) on this many threads, together.
inline std::vector<std::string> problems_on_threads(int ranks, std::vector<std::string> (*problems)(const Group&)) {
  std::mutex mutex;
  std::vector<std::string> all;
  testing::run_ranks(ranks, [&](const Group& world) {
    const std::vector<std::string> mine = problems(world);
    const std::lock_guard lock(mutex);
    all.insert(all.end(), mine.begin(), mine.end());
  });
  return all;
}

}  // namespace trireme::tests
