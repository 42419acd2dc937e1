#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "guardian.hpp"
#include "trireme/core/run_status.hpp"

// Why a job ended.
enum class Cause : std::uint8_t {
  finished,
  stopped,  // on a signal, saved or before its first step
  configuration,
  crash,          // a signal of its own doing, or an exit code that says nothing else
  hang,           // a deadline passed, or the launcher was stuck
  diverged,       // not finite for too long
  out_of_memory,  // its own error, or the kernel's killer
  killed,         // from outside
};
std::string_view name_of(Cause cause);

int exit_code_of(const Ending& ending);     // as a shell has it: 128 + n for signal n
std::string text_of(const Ending& ending);  // exit code 139 (SIGSEGV)
std::uint64_t num_kills_for_memory();  // processes that the kernel has killed for memory: of this cgroup, else of the machine

// `asked`: somebody wanted the job to stop. `kills`: what num_kills_for_memory() went up by.
Cause cause_of(const Ending& ending, const std::optional<trireme::RunStatus>& status, bool asked, std::uint64_t kills);
