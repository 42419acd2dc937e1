#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "trireme/core/export.hpp"

// What the library has to say beside its results and errors: that something is slower than it could be, or that a rank failed.
//
//   log(Severity::warning, "the times of matrix products are not kept: {}", error.what());
//
// Lines go to standard error, with "trireme: " before them, unless the application takes them:
//
//   set_log_sink([](Severity severity, std::string_view line) { my_log.write(name_of(severity), line); });
namespace trireme TRIREME_EXPORT {

enum class Severity : std::uint8_t { debug, info, warning, error };

std::string_view name_of(Severity severity);

// Gets one line, without a newline at its end. Threads call it at once, and it may still run when another one has taken its
// place. When it throws, the line goes to standard error, and so does what it logs itself. It waits for no other rank: the rank
// of which the line tells would wait for it.
using LogSink = std::function<void(Severity severity, std::string_view line)>;

// For the whole process; an empty one: standard error.
void set_log_sink(LogSink sink);

// Less severe lines are left out. At first it is info, or what the environment variable TRIREME_LOG names.
void set_log_level(Severity least);
Severity log_level();

void write_log(Severity severity, fmt::string_view format, fmt::format_args arguments);

template <typename... Args>
void log(Severity severity, fmt::format_string<Args...> format, Args&&... args) {
  if (severity >= log_level()) write_log(severity, format, fmt::make_format_args(args...));
}

}  // namespace trireme
