#include "faults/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::tests {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void become(const std::vector<char*>& arguments, const std::filesystem::path& output) {
  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  dup2(open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), STDOUT_FILENO);
  dup2(STDOUT_FILENO, STDERR_FILENO);
  execvp(arguments.front(), arguments.data());
  _exit(127);
}

}  // namespace

Process::Process(const std::vector<std::string>& command, std::filesystem::path output) : output_(std::move(output)) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  id_ = fork();
  if (id_ == 0) become(arguments, output_);
  require(id_ > 0, "no process can be started");
}

Process::~Process() {
  if (!running()) return;
  kill(id_, SIGKILL);
  waitpid(id_, nullptr, 0);
}

bool Process::running() {
  if (!ended_) ended_ = waitpid(id_, &status_, WNOHANG) == id_;
  return !ended_;
}

void Process::signal(int number) const {
  if (!ended_) kill(id_, number);
}

int Process::wait(std::chrono::seconds limit) {
  const auto end = Clock::now() + limit;
  while (running()) {
    require(Clock::now() < end, "it still runs after {} s: {}", limit.count(), output());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
}

std::string Process::output() const { return text_of(output_); }

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace trireme::tests
