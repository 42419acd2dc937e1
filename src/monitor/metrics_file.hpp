#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/monitor/snapshot.hpp"

namespace trireme::monitor {

// A text file that lines are added to. A failed write is an Error{io} that names it, and leaves no part of a line behind.
class MetricsFile {
 public:
  // Begins with these lines, and keeps the file open.
  MetricsFile(std::filesystem::path path, const std::vector<std::string>& lines);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  void add(std::string_view line);
  void replace_last(std::string_view line);  // of a device, which keeps all that was written: adds it
  // All lines anew. After an Error the file is as it was.
  void replace(const std::vector<std::string>& lines);

 private:
  void open(int flags);
  void write(std::string_view text);
  std::optional<std::int64_t> size() const;  // nothing: it is no file but a device
  [[noreturn]] void refuse(const char* what, int error_number) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t last_line_ = 0;  // where it begins
};

// A snapshot with what one of the same step has told before: counters have risen in both.
Snapshot joined(const Snapshot& before, Snapshot snapshot);

// Error{invalid_argument} where the first line of a file is none of metrics: it is another's, and not to be overwritten.
void require_metrics(const std::filesystem::path& path, bool (*is_own)(std::string_view first_line));

std::vector<std::string> lines_of(
    const std::filesystem::path& path);  // none where there is no file; without an unfinished last line

// The whole number with which the text begins.
std::optional<std::int64_t> number_at_start(std::string_view text);

std::string to_text(double value, std::string_view not_finite);  // the shortest that reads back to the same double

}  // namespace trireme::monitor
