#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

using Command = std::vector<std::string>;

// The value of `--option VALUE` or `--option=VALUE` in a command, the last one; nothing where it is not there.
std::optional<std::string> option_of(const Command& command, std::string_view option);

// The job's own choice of what to resume from: TRIREME_RESUME, else --resume, else auto.
std::string resume_of(const Command& command);
