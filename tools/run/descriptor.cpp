#include "descriptor.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <array>
#include <cerrno>

#include "trireme/core/error.hpp"

namespace {

void check(bool ok, const char* operation) {
  if (ok) return;
  throw trireme::Error({.code = trireme::ErrorCode::io,
                        .message = "the system refuses what it takes to supervise a job",
                        .operation = operation,
                        .error_number = errno});
}

}  // namespace

Pipe open_pipe() {
  std::array<int, 2> ends{};
  check(pipe2(ends.data(), O_CLOEXEC) == 0, "pipe2");
  return {.out = Descriptor(ends[0]), .in = Descriptor(ends[1])};
}

Descriptor watch(const std::vector<int>& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const int descriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  check(descriptor >= 0, "signalfd");
  return Descriptor(descriptor);
}
