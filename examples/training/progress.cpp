#include "training/progress.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int bar_width = 24;
constexpr auto redraw_interval = std::chrono::milliseconds(100);
constexpr auto line_interval = std::chrono::seconds(10);

// Whether a person watches stdout. mpirun gives its ranks a terminal of its own whatever it writes to itself: then its stdout
// decides, which only a rank on mpirun's machine can see.
bool on_terminal() {
  if (isatty(STDOUT_FILENO) == 0) return false;
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return true;
  std::array<char, 64> target{};
  const std::string link = fmt::format("/proc/{}/fd/1", getppid());
  if (readlink(link.c_str(), target.data(), target.size() - 1) < 0) return false;
  const std::string_view name(target.data());
  return name.starts_with("/dev/pts/") || name.starts_with("/dev/tty");
}

std::string duration(double seconds) {
  return fmt::format("{:%H:%M:%S}", std::chrono::seconds(static_cast<std::int64_t>(seconds)));
}

}  // namespace

Progress::Progress(std::int64_t steps, std::string unit, bool shown)
    : steps_(steps), unit_(std::move(unit)), shown_(shown), terminal_(on_terminal()) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\n", stdout);
}

void Progress::step(std::int64_t step, std::string_view losses, double samples_per_second, std::uint64_t bytes_sent) {
  if (!shown_) return;
  const auto now = Clock::now();
  const std::int64_t done = step + 1;
  const bool last = done == steps_;
  if (!last && now - last_ < (terminal_ ? Clock::duration(redraw_interval) : Clock::duration(line_interval))) return;
  last_ = now;
  const std::string sent = bytes_sent == 0 ? "" : fmt::format("{:.3f} MB sent  ", 1e-6 * static_cast<double>(bytes_sent));
  const std::string figures = fmt::format("step {}/{}  {}  {:.0f} {}/s  {}{} left", done, steps_, losses, samples_per_second,
                                          unit_, sent, duration(seconds_left(done)));
  if (terminal_) {
    erase();
    fmt::print("{} {}", bar(done), figures);
    drawn_ = true;
  } else {
    fmt::print("{}\n", figures);
  }
  std::fflush(stdout);
}

void Progress::note(const std::string& line) {
  if (!shown_) return;
  erase();
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void Progress::erase() {
  if (drawn_) std::fputs("\r\033[K", stdout);
  drawn_ = false;
}

std::string Progress::bar(std::int64_t done) const {
  const auto full = static_cast<std::size_t>(done * bar_width / steps_);
  return fmt::format("[{}{}]", std::string(full, '#'), std::string(bar_width - full, '.'));
}

double Progress::seconds_left(std::int64_t done) const {
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  return elapsed / static_cast<double>(done) * static_cast<double>(steps_ - done);
}
