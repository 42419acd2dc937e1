#include "monitor/metrics_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <span>
#include <system_error>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/core/parse_number.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::monitor {

namespace {

std::string text_of_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

bool is_device(const std::filesystem::path& path) {
  std::error_code none;
  const std::string name = std::filesystem::absolute(path, none).lexically_normal().string();
  if (name.starts_with("/dev/") || name.starts_with("/proc/")) return true;  // /dev/stdout may lead to a file
  return std::filesystem::exists(path, none) && !std::filesystem::is_regular_file(path, none);
}

}  // namespace

MetricsFile::MetricsFile(std::filesystem::path path, const std::vector<std::string>& lines) : path_(std::move(path)) {
  if (lines.empty()) {
    open(O_TRUNC);
  } else {
    replace(lines);
  }
}

MetricsFile::~MetricsFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void MetricsFile::add(std::string_view line) {
  const std::int64_t begin = size().value_or(0);
  write(fmt::format("{}\n", line));
  last_line_ = begin;
}

void MetricsFile::replace_last(std::string_view line) {
  if (size() && ftruncate(descriptor_, last_line_) != 0) refuse("the metrics file can't be written", errno);
  add(line);
}

void MetricsFile::replace(const std::vector<std::string>& lines) {
  const std::string text = text_of_lines(lines);
  if (is_device(path_)) {  // not replaced by a file
    if (descriptor_ < 0) open(0);
    return write(text);
  }
  try {
    std::error_code none;
    const std::filesystem::path real = std::filesystem::canonical(path_, none);  // keeps a link
    FileReplacement file(none ? path_ : real);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
    open(0);
  } catch (const Error& error) {
    // No new file can replace it, because of the folder or because the file itself is a mount: overwrites its content.
    const int number = error.fields().error_number;
    if (number != EACCES && number != EPERM && number != EBUSY && number != EROFS && number != EXDEV) throw;
    open(O_TRUNC);
    write(text);
  }
  last_line_ = std::ssize(text) - (std::ssize(lines.back()) + 1);
}

void MetricsFile::open(int flags) {
  const int opened = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | flags, 0666);
  if (opened < 0) refuse("the metrics file can't be opened", errno);
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = opened;
}

std::optional<std::int64_t> MetricsFile::size() const {
  struct stat status {};
  const bool is_file = fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  return is_file ? std::optional<std::int64_t>(status.st_size) : std::nullopt;
}

void MetricsFile::write(std::string_view text) {
  const auto before = size();
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor_, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      const int error_number = errno;
      if (before) static_cast<void>(!ftruncate(descriptor_, *before));
      refuse("the metrics file can't be written", error_number);
    }
  }
}

void MetricsFile::refuse(const char* what, int error_number) const {
  throw Error({.code = ErrorCode::io, .message = what, .path = path_.string(), .error_number = error_number});
}

Row joined(Row before, const Row& more) {
  for (const Row::Cell& cell : more.cells) {
    const auto known = std::ranges::find(before.cells, cell.name, &Row::Cell::name);
    if (known == before.cells.end()) {
      before.cells.push_back(cell);
      continue;
    }
    const auto had = parse_number<double>(known->text);
    const auto has = parse_number<double>(cell.text);
    known->text = cell.rises && had && has ? to_text(*had + *has, "") : cell.text;
  }
  return before;
}

void require_metrics(const std::filesystem::path& path, bool (*is_own)(std::string_view first_line)) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return;
  std::ifstream file(path);
  std::string line;  // may be unfinished
  require(!std::getline(file, line) || is_own(line),
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
