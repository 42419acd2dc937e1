#include "comm/base/node_control.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "catch.hpp"

using namespace trireme::comm;

TEST_CASE("a rank that is killed while it tells of its failure leaves nobody waiting") {
  constexpr std::size_t page = 4096;
  constexpr std::size_t before_text = 128;  // of the control: what it holds of a failure lies across the end of a page
  constexpr std::size_t bytes = 4 * page;
  auto* memory = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  NodeControl* control = NodeControl::create(memory + page - before_text, 1);
  const pid_t rank = fork();
  if (rank == 0) {
    for (const int signal : {SIGSEGV, SIGBUS}) std::signal(signal, SIG_DFL);
    mprotect(memory + page, page, PROT_READ);
    control->record_failure({.rank = 0, .text = std::string(1000, 'x')});
    _exit(0);
  }
  int status = 0;
  waitpid(rank, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(control->failed());
  CHECK_THAT(control->failure().text, ContainsSubstring("killed while it reported its failure"));
  CHECK_FALSE(control->record_failure({.rank = 0, .text = "another"}));
  munmap(memory, bytes);
}
