#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::monitor {

// A text file that lines are added to. A failed write is an Error{io} that names it.
class MetricsFile {
 public:
  // Begins with these lines, and keeps the file open.
  MetricsFile(std::filesystem::path path, const std::vector<std::string>& lines);

  void add(std::string_view line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  [[noreturn]] void refuse(const char* what) const;

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

// Error{invalid_argument} where a file begins otherwise than with `start`: it holds no metrics, and is not to be overwritten.
void require_metrics(const std::vector<std::string>& lines, std::string_view start, const std::filesystem::path& path);

std::vector<std::string> lines_of(
    const std::filesystem::path& path);  // none where there is no file; without an unfinished last line

// The whole number with which the text begins.
std::optional<std::int64_t> number_at_start(std::string_view text);

std::string to_text(double value, std::string_view not_finite);  // the shortest that reads back to the same double

}  // namespace trireme::monitor
