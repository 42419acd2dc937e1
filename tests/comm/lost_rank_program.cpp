#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "trireme/comm/launch/launch.hpp"

using namespace trireme;
using namespace std::chrono_literals;

namespace {

void crash() {
  void* page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<volatile int*>(page) = 1;
}

void get_lost(std::string_view how) {
  if (how == "exit") _exit(0);
  if (how == "kill") raise(SIGKILL);
  if (how == "stop") raise(SIGSTOP);
  if (how == "crash") crash();
  if (how == "sleep") std::this_thread::sleep_for(24h);
  if (how == "loop") {
    for (std::atomic<std::uint64_t> turn = 0;;) ++turn;
  }
}

}  // namespace

// A job that loses a rank, for the tests of what the others and trireme-flight say:
//   lost_rank_program exit|kill|stop|crash|sleep|loop RANK [DEADLINE_MS] [THREADS]
int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const std::string_view how = argv[1];
  const int culprit = std::atoi(argv[2]);
  const std::chrono::milliseconds deadline(argc > 3 ? std::atoi(argv[3]) : 1000);
  const int threads = argc > 4 ? std::atoi(argv[4]) : 0;
  const LaunchOptions options{.ranks = std::max(threads, 1), .threads_per_rank = 1, .deadline = deadline};
  return launch(threads > 0 ? BackendKind::thread : BackendKind::mpi, options, [&](const Group& world) {
    std::vector<float> data(1024);
    world.barrier("together");
    world.all_reduce(std::span(data), ReduceOp::sum, "layer.0.weight").wait_on_host();
    if (world.rank() == culprit) get_lost(how);
    const auto begin = std::chrono::steady_clock::now();
    try {
      world.all_reduce(std::span(data), ReduceOp::sum, "layer.1.weight").wait_on_host();
    } catch (const Error& error) {
      const auto took = std::chrono::steady_clock::now() - begin;
      fmt::print("rank {} got an error after {} ms: {}\n", world.rank(),
                 std::chrono::duration_cast<std::chrono::milliseconds>(took).count(), error.what());
      std::fflush(stdout);
      throw;
    }
    return 0;
  });
}
