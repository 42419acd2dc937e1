#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "trireme/core/export.hpp"

// The library's log. It says, for example, that something is slower than it could be, or that a rank failed.
//
//   log(Severity::warning, "the times of matrix products are not kept: {}", error.what());
//
// Lines go to standard error with the prefix "trireme: ", unless the application sets a sink:
//
//   set_log_sink([](Severity severity, std::string_view line) { my_log.write(name_of(severity), line); });
namespace trireme TRIREME_EXPORT {

enum class Severity : std::uint8_t { debug, info, warning, error };

std::string_view name_of(Severity severity);

// Receives one line without a newline. Several threads may call a sink concurrently, and a call may still run after another
// sink is set. If the sink throws, the line goes to standard error. Lines that the sink itself logs always go to standard
// error. A sink must not wait for other ranks, because they could wait for this rank.
using LogSink = std::function<void(Severity severity, std::string_view line)>;

// Sets the sink of the whole process. An empty sink restores standard error.
void set_log_sink(LogSink sink);

// Drops less severe lines. The default is info, or the value of the environment variable TRIREME_LOG.
void set_log_level(Severity least);
Severity log_level();

void write_log(Severity severity, fmt::string_view format, fmt::format_args arguments);

template <typename... Args>
void log(Severity severity, fmt::format_string<Args...> format, Args&&... args) {
  if (severity >= log_level()) write_log(severity, format, fmt::make_format_args(args...));
}

}  // namespace trireme
