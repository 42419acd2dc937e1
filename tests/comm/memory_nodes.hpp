#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "comm/memory_network.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/comm/wire/algorithm.hpp"

namespace trireme::test {

// A job whose ranks are threads of this process, on several nodes: within a node they share memory, between nodes everything
// goes over a MemoryNetwork, except messages of send and receive, which are passed on directly.
struct NodesJob {
  std::vector<int> nodes;  // ranks of each
  Weather weather = {};
  Algorithm algorithm = Algorithm::automatic;
  ProgressMode progress = ProgressMode::thread;
  std::chrono::milliseconds deadline = std::chrono::minutes(1);
};

// Runs `main` on every rank, as trireme::launch() does.
int launch_on_nodes(const NodesJob& job, const std::function<int(const Group&)>& main);

}  // namespace trireme::test
