#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

using Command = std::vector<std::string>;

// The value of `--option VALUE` or `--option=VALUE` in a command, the last one, else that of its --config FILE; nothing where
// it is not there. As for the trainers '_' and '-' are the same within the option's name.
std::optional<std::string> option_of(const Command& command, std::string_view option);

// A word of it is a program that starts ranks: mpirun, mpiexec, srun and their like.
bool names_launcher(const Command& command);

// The job's own choice of what to resume from: TRIREME_RESUME, else --resume, else auto.
std::string resume_of(const Command& command);
