#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace trireme::tests {

// A running command, whose stdout and stderr go to a file. It is killed at the end of its life.
class Process {
 public:
  Process(const std::vector<std::string>& command, std::filesystem::path output);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }
  bool running();
  void signal(int number) const;
  // The exit code, as in a shell: 137 for SIGKILL. Throws when it runs longer.
  int wait(std::chrono::seconds limit = std::chrono::seconds(60));
  std::string output() const;

 private:
  pid_t id_ = -1;
  int status_ = 0;
  bool ended_ = false;
  std::filesystem::path output_;
};

std::string text_of(const std::filesystem::path& file);  // empty when it is missing

}  // namespace trireme::tests
