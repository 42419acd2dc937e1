#include <algorithm>
#include <thread>
#include <vector>

#include "comm/cores.hpp"
#include "comm/flight.hpp"
#include "comm/launch.hpp"
#include "comm/thread_platform.hpp"

namespace trireme::comm {

int launch_threads(const LaunchOptions& options, const std::function<int(Group)>& main) {
  const int ranks = options.ranks;
  const cpu_set_t mask = own_cores();
  const int cores = CPU_COUNT(&mask);
  const std::shared_ptr<NodeControl> node = make_node_control(ranks);
  const auto group = std::make_shared<ThreadGroup>(ranks);
  const auto flights = open_flights(options, ranks);

  std::vector<int> codes(static_cast<std::size_t>(ranks));
  const auto run = [&](int rank) {
    set_threads(threads_of_rank(cores, ranks, options.threads_per_rank));
    const auto context = std::make_shared<RankContext>(
        RankContext::Place{.rank = rank, .node_rank = rank, .shares_cores = ranks > cores, .deadline = options.deadline}, node);
    if (const auto& flight = flights[static_cast<std::size_t>(rank)]) {
      flight->enter_thread();
      context->record_to(flight);
    }
    const auto platform = std::make_shared<ThreadPlatform>(context);
    codes[static_cast<std::size_t>(rank)] = run_rank(*context, platform->join(world_members(rank, ranks), group), main);
    context->leave();
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  }
  return std::ranges::max(codes);
}

}  // namespace trireme::comm
