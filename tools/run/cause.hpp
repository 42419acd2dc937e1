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
  stopped,        // by a signal: it saved, or had not begun its first step
  configuration,  // an error of configuration before the first step
  launch,         // the launcher failed before any rank ran
  crash,          // a signal that the job caused itself, or an exit code with no other meaning
  hang,           // a deadline passed, or the launcher was stuck
  diverged,       // the loss was not finite for too long
  out_of_memory,  // the job reported it, or the kernel killed a process for memory
  killed,         // from outside, or its machine was lost
};
std::string_view name_of(Cause cause);

int exit_code_of(const Ending& ending);     // as in a shell: 128 + n for signal n
constexpr int launch_failure = 6;           // the exit code of trireme-run for Cause::launch
std::string text_of(const Ending& ending);  // e.g. "exit code 139 (SIGSEGV)"
std::uint64_t num_kills_for_memory();  // processes that the kernel has killed for memory: of this cgroup, else of the machine

// What is known of a job besides its launcher's end.
struct Witness {
  std::optional<trireme::RunStatus> status = std::nullopt;  // the last one that rank 0 reported, if it can be read
  bool begun = false;                                       // this start has done a step
  bool has_launcher = false;                                // the command names a program that starts ranks
  bool had_ranks = false;    // the flight recorder shows ranks of this start, or the launcher reported the end of one
  bool all_returned = true;  // main has returned or thrown on every rank that the recorder shows
  bool asked = false;        // the job was asked to stop
  bool forced = false;       // the job did not stop, and was ended
  std::uint64_t kills = 0;   // the increase of num_kills_for_memory()
};

// Whether mpirun of Open MPI says in one of these lines that a rank failed, rather than mpirun itself.
bool tells_of_rank(const std::deque<std::string>& lines);

// Whether the launcher reports success although the job has not finished. mpirun of Open MPI 5 exits with 0 after it has lost a
// machine.
bool ended_early(const Ending& ending, const Witness& witness);

Cause cause_of(const Ending& ending, const Witness& witness);

// The exit code of trireme-run after such an end, without --preempted-code.
int reported_code(Cause cause, int code);
