#include <fmt/format.h>
#include <stdio_ext.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "monitor/progress_line.hpp"
#include "trireme/core/parse_number.hpp"
#include "trireme/monitor/sink.hpp"

namespace trireme::monitor {

namespace {

constexpr int usual_width = 80;

// Whether the stream is a terminal that a person sees. mpirun always gives its ranks a terminal, so the standard output of
// mpirun itself decides, which only a rank on the same machine can look at.
bool is_terminal(std::FILE* stream) {
  if (isatty(fileno(stream)) == 0) return false;
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return true;
  std::array<char, 64> target{};
  const std::string link = fmt::format("/proc/{}/fd/1", getppid());
  if (readlink(link.c_str(), target.data(), target.size() - 1) < 0) return false;
  const std::string_view name(target.data());
  return name.starts_with("/dev/pts/") || name.starts_with("/dev/tty");
}

// The width of the terminal, read before each line since windows change. The terminal that mpirun makes does not know its
// width, but COLUMNS may.
int width_of(std::FILE* stream) {
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int width = columns == nullptr ? 0 : parse_number<int>(columns).value_or(0);
  return width > 0 ? width : usual_width;
}

ProgressLine::Time now() { return std::chrono::steady_clock::now().time_since_epoch(); }

class Terminal final : public Sink {
 public:
  explicit Terminal(const TerminalOptions& options)
      : line_(options), stream_(options.stream), terminal_(is_terminal(options.stream)) {}

  ~Terminal() override {
    if (!drawn_) return;
    put("\n");
    flush();
  }

  void write(const Snapshot& snapshot) override {
    line_.add(snapshot, now());
    if (!line_.due(terminal_)) return;
    if (terminal_) {
      erase();
      put(line_.on_terminal(width_of(stream_) - 1));  // a full line would make the cursor wrap
      drawn_ = true;
    } else {
      put(line_.plain() + "\n");
    }
    line_.shown();
    flush();
  }

  void note(std::string_view text) override {
    erase();
    put(std::string(text) + "\n");
    flush();
  }

 private:
  // Ignores errors: a run does not end because its output is closed.
  void put(const std::string& text) { std::fputs(text.c_str(), stream_); }

  // Drops text that can't be written; otherwise the stream would try again when the process ends.
  void flush() {
    if (std::fflush(stream_) != 0) __fpurge(stream_);
  }

  void erase() {
    if (drawn_) std::fputs("\r\033[K", stream_);
    drawn_ = false;
  }

  ProgressLine line_;
  std::FILE* stream_;
  bool terminal_;
  bool drawn_ = false;
};

}  // namespace

std::unique_ptr<Sink> terminal(const TerminalOptions& options) { return std::make_unique<Terminal>(options); }

}  // namespace trireme::monitor
