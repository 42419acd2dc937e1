#include "monitor/progress_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace trireme::monitor {

namespace {

using Time = ProgressLine::Time;

constexpr int bar_width = 24;
constexpr Time redraw_interval{0.1};
constexpr Time rate_window{10};
// Without a terminal: a line every 10 seconds in the first 10 minutes, then one per minute.
constexpr Time often{10};
constexpr Time seldom{60};
constexpr Time first_minutes{600};

std::string duration(double seconds) {
  const auto whole = std::llround(std::min(seconds, 3.6e8));
  return fmt::format("{:02}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string bar(double share) {
  const auto full = static_cast<std::size_t>(share * bar_width);
  return fmt::format("[{}{}] ", std::string(full, '#'), std::string(bar_width - full, '.'));
}

std::string rate_text(double rate) { return rate < 10 ? fmt::format("{:.2f}", rate) : fmt::format("{:.0f}", rate); }

}  // namespace

void ProgressLine::add(const Snapshot& snapshot, Time now) {
  snapshot_ = snapshot;
  snapshot_.share = std::isnan(snapshot.share) ? 0 : std::clamp(snapshot.share, 0.0, 1.0);
  now_ = now;
  const Metric* unit = snapshot.find(options_.unit);
  const Point point{.time = now, .share = snapshot_.share, .count = unit == nullptr ? 0 : unit->value};
  if (!first_) first_ = point;
  window_.push_back(point);
  while (window_.size() > 2 && now - window_[1].time >= rate_window) window_.pop_front();
}

bool ProgressLine::due(bool on_terminal) const {
  if (!last_shown_ || snapshot_.last) return true;
  const Time interval = on_terminal ? redraw_interval : now_ - first_->time < first_minutes ? often : seldom;
  return now_ - *last_shown_ >= interval;
}

std::optional<double> ProgressLine::rate() const {
  const Point& begin = window_.front();
  const Point& end = window_.back();
  if (end.time <= begin.time || end.count <= begin.count) return std::nullopt;
  return (end.count - begin.count) / (end.time - begin.time).count();
}

std::optional<double> ProgressLine::seconds_left() const {
  const double share = snapshot_.share - first_->share;
  if (share <= 0) return std::nullopt;
  return (now_ - first_->time).count() / share * (1 - snapshot_.share);
}

std::string ProgressLine::figures() const {
  std::string text =
      snapshot_.steps ? fmt::format("step {}/{}", snapshot_.step, *snapshot_.steps) : fmt::format("step {}", snapshot_.step);
  if (snapshot_.epoch) text += fmt::format("  epoch {:.2f}", *snapshot_.epoch);
  for (const std::string& name : options_.shown) {
    if (const Metric* metric = snapshot_.find(name)) text += fmt::format("  {} {:.4f}", name, metric->value);
  }
  if (const auto per_second = rate()) text += fmt::format("  {} {}/s", rate_text(*per_second), options_.unit);
  if (const auto left = seconds_left()) text += fmt::format("  {} left", duration(*left));
  return text;
}

std::string ProgressLine::plain() const { return figures(); }

std::string ProgressLine::on_terminal(int width) const {
  const auto most = static_cast<std::size_t>(std::max(width, 1));
  std::string text = figures();
  if (text.size() + bar_width + 3 <= most) text = bar(snapshot_.share) + text;
  return text.substr(0, most);
}

}  // namespace trireme::monitor
