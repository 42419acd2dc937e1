#include "trireme/core/log.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

namespace trireme {
namespace {

constexpr std::array<std::string_view, 4> level_names{"debug", "info", "warning", "error"};

void to_standard_error(std::string_view line) {
  const std::string text = fmt::format("trireme: {}\n", line);
  std::fwrite(text.data(), 1, text.size(), stderr);  // one call, so that lines of several threads do not mix
}

Severity level_of_environment() {
  const char* wanted = std::getenv("TRIREME_LOG");
  if (wanted == nullptr || *wanted == '\0') return Severity::info;
  for (std::size_t index = 0; index < level_names.size(); ++index) {
    if (level_names[index] == wanted) return static_cast<Severity>(index);
  }
  to_standard_error(fmt::format("TRIREME_LOG is {}, but must be debug, info, warning or error", wanted));
  return Severity::info;
}

std::atomic<Severity>& level() {
  static std::atomic<Severity> level = level_of_environment();
  return level;
}

// Never destroyed: threads may log while the process ends.
struct Sink {
  std::mutex mutex;
  std::shared_ptr<const LogSink> call;
};
Sink& sink() {
  static Sink& sink = *new Sink;
  return sink;
}

std::shared_ptr<const LogSink> current_sink() {
  const std::lock_guard lock(sink().mutex);
  return sink().call;
}

}  // namespace

std::string_view name_of(Severity severity) { return level_names[static_cast<std::size_t>(severity)]; }

void set_log_sink(LogSink call) {
  auto next = call ? std::make_shared<const LogSink>(std::move(call)) : nullptr;
  const std::lock_guard lock(sink().mutex);
  sink().call.swap(next);
}

void set_log_level(Severity least) { level() = least; }
Severity log_level() { return level(); }

void write_log(Severity severity, fmt::string_view format, fmt::format_args arguments) {
  thread_local bool in_sink = false;
  const std::string line = fmt::vformat(format, arguments);
  const auto call = in_sink ? nullptr : current_sink();
  if (call != nullptr) {
    in_sink = true;
    try {
      (*call)(severity, line);
      in_sink = false;
      return;
    } catch (...) {  // the caller must not fail because of its log
      in_sink = false;
    }
  }
  to_standard_error(line);
}

}  // namespace trireme
