#include "comm/base/shared_segment.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <new>
#include <sstream>

#include "catch.hpp"

using namespace trireme::comm;

namespace {

constexpr int ranks = 2;
constexpr std::size_t bytes = std::size_t{1} << 20;

// Two processes that share segments, one of which is killed.
class Processes {
 public:
  Processes() {
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (memory) Shared;
  }
  ~Processes() { munmap(shared_, sizeof(Shared)); }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // Points are counted in each process from 1; 0: no process is killed. Returns how many points the process with this rank
  // passed.
  int run(int victim, int point) {
    std::array<pid_t, ranks> children{};
    for (int rank = 0; rank < ranks; ++rank) {
      children[static_cast<std::size_t>(rank)] = fork();
      if (children[static_cast<std::size_t>(rank)] == 0) {
        share(rank, rank == victim ? point : 0);
        _exit(shared_->names == 0 ? 0 : 1);
      }
    }
    // The other one would wait for ever.
    int status = 0;
    waitpid(children[static_cast<std::size_t>(victim)], &status, 0);
    if (WIFSIGNALED(status)) kill(children[static_cast<std::size_t>(1 - victim)], SIGKILL);
    waitpid(children[static_cast<std::size_t>(1 - victim)], nullptr, 0);
    return shared_->points[static_cast<std::size_t>(victim)];
  }
  int names() const { return shared_->names; }
  int mapped() const { return shared_->mapped; }

 private:
  struct Shared {
    std::array<std::array<char, 256>, ranks> texts{};
    std::array<std::atomic<int>, ranks> rounds{};
    std::array<std::atomic<int>, ranks> points{};
    std::atomic<int> names{0};   // seen at a point, of segments
    std::atomic<int> mapped{0};  // segments seen at a point
  };

  void pass(int rank, int last) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find(" /dev/shm/") == std::string::npos) continue;
      ++shared_->mapped;
      if (!line.ends_with(" (deleted)")) ++shared_->names;
    }
    if (++shared_->points[static_cast<std::size_t>(rank)] == last) kill(getpid(), SIGKILL);
  }

  void share(int rank, int last) {
    int round = 0;
    const Exchange exchange = [&](std::string_view text) {
      pass(rank, last);
      const auto me = static_cast<std::size_t>(rank);
      text.copy(shared_->texts[me].data(), shared_->texts[me].size() - 1);
      shared_->texts[me][text.size()] = '\0';
      shared_->rounds[me] = ++round;
      while (shared_->rounds[1 - me] < round) usleep(100);
      const std::vector<std::string> texts{shared_->texts[0].data(), shared_->texts[1].data()};
      shared_->rounds[me] = ++round;
      while (shared_->rounds[1 - me] < round) usleep(100);
      pass(rank, last);
      return texts;
    };
    const auto reserve = [&](SharedSegment& segment) {
      pass(rank, last);
      segment.reserve(0, bytes);
      pass(rank, last);
    };
    const SharingPlan plan{.bytes = bytes, .sharers = {0, 1}, .me = rank, .on_create = reserve, .on_map = reserve};
    const Sharing sharing = share_segment(exchange, plan);
    if (sharing.segment == nullptr) _exit(1);
    sharing.segment->data()[rank] = std::byte{7};
    exchange("");
    if (sharing.segment->data()[0] != std::byte{7} || sharing.segment->data()[1] != std::byte{7}) _exit(1);
  }

  Shared* shared_;
};

}  // namespace

TEST_CASE("a process that is killed while memory is shared leaves no name behind") {
  for (int victim = 0; victim < ranks; ++victim) {
    const int points = Processes().run(victim, 0);
    CHECK(points >= 8);
    for (int point = 0; point <= points; ++point) {
      INFO("rank " << victim << " is killed at point " << point);
      Processes processes;
      CHECK(processes.run(victim, point) == (point == 0 ? points : point));
      CHECK(processes.names() == 0);
      if (point > 2) CHECK(processes.mapped() > 0);
    }
  }
}
