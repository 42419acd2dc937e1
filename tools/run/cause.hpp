#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "guardian.hpp"
#include "trireme/files/run_status.hpp"

// Why a job ended.
enum class Cause : std::uint8_t {
  finished,
  stopped,        // on a signal, saved or before its first step
  configuration,  // found before its first step
  launch,         // the launcher failed before any rank was there
  crash,          // a signal of its own doing, or an exit code that says nothing else
  hang,           // a deadline passed, or the launcher was stuck
  diverged,       // not finite for too long
  out_of_memory,  // its own error, or the kernel's killer
  killed,         // from outside, or its machine was lost
};
std::string_view name_of(Cause cause);

int exit_code_of(const Ending& ending);     // as a shell has it: 128 + n for signal n
constexpr int launch_failure = 6;           // exit code of trireme-run for Cause::launch
std::string text_of(const Ending& ending);  // exit code 139 (SIGSEGV)
std::uint64_t num_kills_for_memory();  // processes that the kernel has killed for memory: of this cgroup, else of the machine

// What is known of a job beside its launcher's end.
struct Witness {
  std::optional<trireme::RunStatus> status = std::nullopt;  // the last that rank 0 reported, if it can be read
  bool begun = false;                                       // it has done a step since this start
  bool has_launcher = false;                                // the command names a program that starts ranks
  bool had_ranks = false;    // the flight recorder shows ranks of this start, or the launcher tells of one's end
  bool all_returned = true;  // main has returned on every rank that the recorder shows
  bool asked = false;        // somebody wanted the job to stop
  bool forced = false;       // it was ended, as it did not stop
  std::uint64_t kills = 0;   // what num_kills_for_memory() went up by
};

// mpirun of Open MPI says in one of these lines that a rank has failed, and not mpirun itself.
bool tells_of_rank(const std::deque<std::string>& lines);

// The launcher says that all is well, the job does not: mpirun of Open MPI 5 ends with 0 when it has lost a machine.
bool ended_early(const Ending& ending, const Witness& witness);

Cause cause_of(const Ending& ending, const Witness& witness);

// What trireme-run tells of such an end by its own exit code, where nobody asked for another.
int reported_code(Cause cause, int code);
