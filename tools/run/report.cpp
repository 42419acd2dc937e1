#include "report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "trireme/files/file_system.hpp"

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

void keep_earlier(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_regular_file(fs::symlink_status(path, ignored))) return;
  for (int number = 1; number < 10'000; ++number) {
    const fs::path earlier = path.string() + fmt::format(".{}", number);
    if (fs::exists(fs::symlink_status(earlier, ignored))) continue;
    fs::rename(path, earlier, ignored);
    return;
  }
}

}  // namespace

std::string step_text(const Attempt& attempt) {
  if (!attempt.status) return attempt.begun ? "at an unknown step" : "before its first step";
  return fmt::format("at step {} or later", attempt.status->step);
}

void tell(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

void print(const Report& report) {
  const Attempt& last = report.attempts.back();
  tell(fmt::format("trireme-run: stopped after {} start{}: {}\n", report.attempts.size(),
                   report.attempts.size() == 1 ? "" : "s", report.reason));
  tell(fmt::format("  cause       {}: {}\n", name_of(last.cause), last.ending));
  tell(fmt::format("  step        {}; last checkpoint: {}\n", step_text(last),
                   last.checkpoint ? fmt::format("step {}", *last.checkpoint) : "none"));
  for (const std::string& finding : last.findings) tell(fmt::format("  found       {}\n", finding));
  if (!report.flight.empty()) tell(fmt::format("  recorder    trireme-flight {}\n", report.flight.string()));
}

void write(const Report& report, const std::filesystem::path& path) {
  nlohmann::json object = {{"command", report.command},
                           {"exit_code", report.exit_code},
                           {"reason", report.reason},
                           {"flight", report.flight.string()},
                           {"attempts", nlohmann::json::array()}};
  for (const Attempt& attempt : report.attempts) object["attempts"].push_back(json_of(attempt));
  const std::string text = object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  keep_earlier(path);
  trireme::FileReplacement file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}
