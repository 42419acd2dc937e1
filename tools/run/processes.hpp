#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

// A process, except one that waits to be reaped. `start` distinguishes it from a later process with the same id.
struct LivingProcess {
  pid_t id = 0;
  pid_t parent = 0;
  pid_t session = 0;
  std::uint64_t start = 0;  // in ticks after the boot
};

// The process `head`, if it lives, and its descendants on this machine.
std::vector<LivingProcess> family_of(pid_t head);

// Whether the process was started with NAME=VALUE in its environment. A text that ends with '=' matches any value.
bool has_variable(pid_t process, std::string_view text);

// Whether a launcher started the process as a rank: it has the variable of a rank of Open MPI or of PMI.
bool is_rank(pid_t process);

// From now on, descendants whose parent ends become children of this process.
void adopt_descendants();

// Kills the children of this process that `is_own` accepts, then those that it adopts from them, until none is left. Only
// children are killed: their ids can't be given to other processes before this process reaps them.
void kill_children(const std::function<bool(const LivingProcess&)>& is_own);
