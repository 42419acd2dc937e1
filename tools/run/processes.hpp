#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

// A process that waits to be reaped is none. The start tells it from a later one of the same number.
struct LivingProcess {
  pid_t id = 0;
  pid_t parent = 0;
  pid_t session = 0;
  std::uint64_t start = 0;  // ticks after the boot
};

// `head`, if it lives, and the processes of this machine that it or one of its descendants started.
std::vector<LivingProcess> family_of(pid_t head);

// It was started with this text, NAME=VALUE, in its environment; a text that ends with '=' stands for any value.
bool has_variable(pid_t process, std::string_view text);

// mpirun of Open MPI started it as a rank.
bool is_rank(pid_t process);

// From now on descendants whose parents end become children of this process.
void adopt_descendants();

// Kills the children of this process that `is_own` accepts, then those that it adopts from them, and returns when none is left.
// Only children are killed: until this process reaps one, nobody else gets its number.
void kill_children(const std::function<bool(const LivingProcess&)>& is_own);
