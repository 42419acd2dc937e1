#include "comm/nccl_ranks.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "trireme/comm/launch/launch.hpp"
#include "trireme/device/cuda.hpp"

namespace trireme::test {
namespace {

constexpr int skipped = 77;

void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

// As one machine after the other, over the loopback.
[[noreturn]] void become_rank(const char* program, int rank, int ranks, const std::string& job, bool fails) {
  set("RANK", std::to_string(rank));
  set("LOCAL_RANK", std::to_string(rank));
  set("NCCL_HOSTID", "trireme-" + job + "-" + std::to_string(rank));
  set("WORLD_SIZE", std::to_string(ranks));
  set("LOCAL_WORLD_SIZE", std::to_string(ranks));
  set("MASTER_ADDR", "127.0.0.1");
  set("MASTER_PORT", std::to_string(20000 + std::stoi(job) % 20000));
  set("NCCL_SOCKET_IFNAME", "=lo");
  set("NCCL_NET", "Socket");
  for (const char* name : {"NCCL_IB_DISABLE", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"}) set(name, "1");
  for (const char* name : {"NCCL_NVLS_ENABLE", "NCCL_MNNVL_ENABLE", "NCCL_RAS_ENABLE"}) set(name, "0");
  set("NCCL_NET_PLUGIN", "none");
  set("NCCL_MAX_CTAS", "4");
  unsetenv("OMPI_COMM_WORLD_SIZE");
  execl(program, program, "rank", fails ? "fails" : nullptr, nullptr);
  _exit(126);
}

int start_ranks(int ranks, bool fails) {
  const std::string job = std::to_string(getpid());
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    processes.push_back(fork());
    if (processes.back() == 0) become_rank("/proc/self/exe", rank, ranks, job, fails);
  }
  const int wanted = fails ? 1 : 0;
  int result = 0;
  for (const pid_t process : processes) {
    int status = 0;
    waitpid(process, &status, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code == skipped) return skipped;
    if (code == wanted) continue;
    std::fprintf(stderr, "a rank ended with %d instead of %d\n", code, wanted);
    result = 1;
  }
  return result;
}

}  // namespace

int run_nccl_ranks(int argc, char** argv, RankMain checks, RankMain fails) {
  const std::string what = argc > 1 ? argv[1] : "2";
  const bool failing = argc > 2;
  if (what != "rank") return start_ranks(std::stoi(what), failing);
  if (device::cuda_device_count() == 0) return skipped;
  return launch(BackendKind::nccl, {.deadline = std::chrono::minutes(1), .gpu_collectives = GpuCollectives::nccl},
                failing ? fails : checks);
}

}  // namespace trireme::test
