#include "monitor/metrics_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <span>
#include <system_error>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/core/file.hpp"

namespace trireme::monitor {

MetricsFile::MetricsFile(std::filesystem::path path, const std::vector<std::string>& lines) : path_(std::move(path)) {
  if (!lines.empty()) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    FileReplacement file(path_);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
  }
  file_.reset(std::fopen(path_.c_str(), lines.empty() ? "w" : "a"));
  if (!file_) refuse("the metrics file can't be opened");
}

void MetricsFile::add(std::string_view line) {
  const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() &&
                       std::fputc('\n', file_.get()) != EOF && std::fflush(file_.get()) == 0;
  if (!written) refuse("the metrics file can't be written");
}

void MetricsFile::refuse(const char* what) const {
  throw Error({.code = ErrorCode::io, .message = what, .path = path_.string(), .error_number = errno});
}

void require_metrics(const std::vector<std::string>& lines, std::string_view start, const std::filesystem::path& path) {
  require(lines.empty() || lines.front().starts_with(start),
          "{} holds something else than the metrics of a run: name another file for them", path.string());
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return lines;  // a device has no end
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && !file.eof();) lines.push_back(std::move(line));
  return lines;
}

std::optional<std::int64_t> number_at_start(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() ? std::optional(number) : std::nullopt;
}

std::string to_text(double value, std::string_view not_finite) {
  return std::isfinite(value) ? fmt::format("{}", value) : std::string(not_finite);
}

}  // namespace trireme::monitor
