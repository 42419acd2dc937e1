#include "report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "trireme/core/file.hpp"

namespace {

template <typename T>
nlohmann::json optional_json(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

nlohmann::json json_of(const Attempt& attempt) {
  return {{"cause", name_of(attempt.cause)},
          {"exit_code", attempt.exit_code},
          {"ending", attempt.ending},
          {"step", attempt.status ? nlohmann::json(attempt.status->step) : nlohmann::json()},
          {"checkpoint", optional_json(attempt.checkpoint)},
          {"resume", attempt.resume},
          {"seconds", attempt.seconds},
          {"findings", attempt.findings},
          {"stderr", attempt.messages}};
}

}  // namespace

std::string step_text(const Attempt& attempt) {
  if (!attempt.status) return "before its first step";
  return fmt::format("at step {} or later", attempt.status->step);
}

void print(const Report& report) {
  const Attempt& last = report.attempts.back();
  fmt::print(stderr, "trireme-run: stopped after {} start{}: {}\n", report.attempts.size(),
             report.attempts.size() == 1 ? "" : "s", report.reason);
  fmt::print(stderr, "  cause       {}: {}\n", name_of(last.cause), last.ending);
  fmt::print(stderr, "  step        {}; last checkpoint: {}\n", step_text(last),
             last.checkpoint ? fmt::format("step {}", *last.checkpoint) : "none");
  for (const std::string& finding : last.findings) fmt::print(stderr, "  found       {}\n", finding);
  if (!report.flight.empty()) fmt::print(stderr, "  recorder    trireme-flight {}\n", report.flight.string());
}

void write(const Report& report, const std::filesystem::path& path) {
  nlohmann::json object = {{"command", report.command},
                           {"exit_code", report.exit_code},
                           {"reason", report.reason},
                           {"flight", report.flight.string()},
                           {"attempts", nlohmann::json::array()}};
  for (const Attempt& attempt : report.attempts) object["attempts"].push_back(json_of(attempt));
  const std::string text = object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  trireme::FileReplacement file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}
