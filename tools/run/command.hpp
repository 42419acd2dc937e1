#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

using Command = std::vector<std::string>;

// The last value of `--option VALUE` or `--option=VALUE` in a command, else the value in its --config FILE, else nothing. As in
// the trainers, '_' and '-' mean the same in the option's name.
std::optional<std::string> option_of(const Command& command, std::string_view option);

// Whether a word of the command is a program that starts ranks, as mpirun, mpiexec or srun.
bool names_launcher(const Command& command);

// What the job's command resumes from: TRIREME_RESUME, else --resume, else auto.
std::string resume_of(const Command& command);
