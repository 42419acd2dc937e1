#include "trainer/run_observers.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"

namespace trireme::trainer {

template <typename F>
void RunObservers::attempt(Observer& observer, const F& f) {
  std::string what;
  try {
    if (observer.sink == nullptr) observer.sink = observer.make();
    return f(*observer.sink);
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    what = "something else than a std::exception was thrown";
  }
  if (!std::exchange(observer.has_failed, true)) note(fmt::format("note: metrics are lost, and training goes on: {}", what));
}

void RunObservers::open_metrics(const std::string& path, std::int64_t done) {
  if (!std::exchange(awaits_metrics_, false)) return;
  const monitor::FileOptions options{.done = done};
  const auto make = [path, options] {
    return path.ends_with(".csv") ? monitor::csv(path, options) : monitor::json_lines(path, options);
  };
  Observer& file = observers_.emplace_back(Observer{.make = make, .sink = nullptr});
  try {
    file.sink = make();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io) throw;
    attempt(file, [](const monitor::Sink&) {});
  }
  for (const monitor::Snapshot& snapshot : std::exchange(waiting_, {})) {
    attempt(file, [&snapshot](monitor::Sink& sink) { sink.write(snapshot); });
  }
}

void RunObservers::leave_metrics() {
  awaits_metrics_ = false;
  waiting_.clear();
}

void RunObservers::watch(const monitor::TerminalOptions& options) {
  people_.sink = monitor::terminal(options);
  shows_progress_ = true;
}

void RunObservers::add(std::unique_ptr<monitor::Sink> sink) {
  observers_.push_back(Observer{.make = nullptr, .sink = std::move(sink)});
}

void RunObservers::note(std::string_view line) {
  for (Observer& observer : observers_) {
    if (observer.sink) attempt(observer, [line](monitor::Sink& sink) { sink.note(line); });
  }
  if (people_.sink) {
    attempt(people_, [line](monitor::Sink& sink) { sink.note(line); });
  } else {
    log(Severity::info, "{}", line);
  }
}

void RunObservers::step(const monitor::Snapshot& snapshot) {
  if (shows_progress_) attempt(people_, [&snapshot](monitor::Sink& sink) { sink.write(snapshot); });
  report(snapshot);
}

void RunObservers::report(const monitor::Snapshot& snapshot) {
  if (awaits_metrics_) waiting_.push_back(snapshot);
  for (Observer& observer : observers_) attempt(observer, [&snapshot](monitor::Sink& sink) { sink.write(snapshot); });
}

}  // namespace trireme::trainer
