#include "core/process.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "catch.hpp"

using namespace trireme;

TEST_CASE("a process and its threads have a status") {
  const auto own = status_of(getpid());
  REQUIRE(own);
  CHECK(own->parent == getppid());
  CHECK(own->session == getsid(0));
  CHECK(own->start > 0);
  const auto thread = status_of(getpid(), gettid());
  REQUIRE(thread);
  CHECK(thread->state == 'R');
  CHECK_FALSE(status_of(getpid(), 0));
  CHECK_FALSE(status_of(-1));
  CHECK_FALSE(space_of_processes().empty());
}

TEST_CASE("a process that ends while it is asked for is none, or one that ended") {
  int before = 0, after = 0;
  for (int round = 0; round < 300; ++round) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    std::atomic<bool> reaped{false};
    std::jthread reaper([&] {
      waitpid(child, nullptr, 0);
      reaped = true;
    });
    while (!reaped) {
      const auto status = status_of(child);
      (status ? before : after) += 1;
    }
    CHECK_FALSE(status_of(child));
  }
  CHECK(before + after > 0);
}

TEST_CASE("what can't be read has no text") {
  CHECK(read_system_text("/proc/self/comm").value_or("").ends_with('\n'));
  CHECK(read_system_text("/proc/self/smaps").value_or("").size() > 4096);
  CHECK_FALSE(read_system_text("/proc"));  // a folder
  CHECK_FALSE(read_system_text("/proc/none"));
  // Opened, and gone before it is read: the status of a process that is reaped in between.
  const pid_t child = fork();
  if (child == 0) _exit(0);
  const int open_status = ::open(("/proc/" + std::to_string(child) + "/stat").c_str(), O_RDONLY);
  waitpid(child, nullptr, 0);
  char text = 0;
  CHECK(::read(open_status, &text, 1) == -1);
  CHECK_FALSE(read_system_text("/proc/self/fd/" + std::to_string(open_status)));
  ::close(open_status);
}
