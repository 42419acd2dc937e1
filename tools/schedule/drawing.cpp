#include "drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace trireme::parallel {
namespace {

using Kind = PipelineAction::Kind;

// The letter of the chunk; empty for the first chunk.
std::string chunk_letter(const PipelineSchedule& schedule, const PipelineAction& action) {
  const int chunk = action.stage / schedule.num_ranks;
  return chunk == 0 ? "" : std::string(1, static_cast<char>('a' + chunk % 26));
}

std::string label(const PipelineSchedule& schedule, const PipelineAction& action) {
  static constexpr std::string_view letters = "FBW";
  return fmt::format("{}{}{}", letters[static_cast<std::size_t>(action.kind)], action.micro_batch,
                     chunk_letter(schedule, action));
}

// Columns per second, so that each label and a space fit into the columns of its action.
double columns_per_second(const PipelineSchedule& schedule, const PipelineTimeline& timeline) {
  double columns = 0;
  for (const auto& of_rank : timeline.actions) {
    for (const TimedAction& timed : of_rank) {
      if (timed.end == timed.begin) continue;
      columns = std::max(columns, static_cast<double>(label(schedule, timed.action).size() + 1) / (timed.end - timed.begin));
    }
  }
  return columns;
}

struct Look {
  std::string_view name;
  std::string_view color;
};

// Shades of blue, green and orange that colour-blind readers can tell apart.
Look look_of(Kind kind) {
  if (kind == Kind::forward) return {"forward", "#9ecae1"};
  if (kind == Kind::backward) return {"backward", "#a1d99b"};
  return {"weight gradients", "#fdae6b"};
}

constexpr double left = 70;  // pixels
constexpr double top = 40;
constexpr double row_height = 30;
constexpr double picture_width = 900;

}  // namespace

std::string draw_text(const PipelineSchedule& schedule, const PipelineTimeline& timeline) {
  const double columns = columns_per_second(schedule, timeline);
  std::string text;
  for (std::size_t rank = 0; rank < timeline.actions.size(); ++rank) {
    std::string line(static_cast<std::size_t>(std::ceil(timeline.seconds * columns)), '.');
    for (const TimedAction& timed : timeline.actions[rank]) {
      const auto begin = static_cast<std::size_t>(std::lround(timed.begin * columns));
      const auto end = std::min(static_cast<std::size_t>(std::lround(timed.end * columns)), line.size());
      if (begin >= end) continue;
      line.replace(begin, end - begin,
                   fmt::format("{:<{}}", label(schedule, timed.action), end - begin).substr(0, end - begin));
    }
    fmt::format_to(std::back_inserter(text), "rank {:<3} {}\n", rank, line);
  }
  return text;
}

std::string draw_svg(const PipelineSchedule& schedule, const PipelineTimeline& timeline) {
  const double scale = timeline.seconds == 0 ? 0 : picture_width / timeline.seconds;
  const double height = top + row_height * static_cast<double>(timeline.actions.size()) + 40;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{}\" y=\"22\" font-size=\"14\">{}: {} ranks, {} micro-batches, {:.1f} % of the time is spent waiting</text>\n",
      left + picture_width + 20, height, left, schedule.name, schedule.num_ranks, schedule.num_micro_batches,
      100 * timeline.bubble());
  const auto out = std::back_inserter(svg);
  for (std::size_t rank = 0; rank < timeline.actions.size(); ++rank) {
    const double y = top + row_height * static_cast<double>(rank);
    fmt::format_to(out, "<text x=\"10\" y=\"{}\">rank {}</text>\n", y + 18, rank);
    for (const TimedAction& timed : timeline.actions[rank]) {
      const double x = left + timed.begin * scale;
      const double width = (timed.end - timed.begin) * scale;
      const Look look = look_of(timed.action.kind);
      const int chunk = timed.action.stage / schedule.num_ranks;
      const double shade = 0.22 * chunk / std::max(1, schedule.num_chunks - 1);
      fmt::format_to(out,
                     "<g><title>{} of stage {}, micro-batch {}: {:g} to {:g}</title>"
                     "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" stroke=\"white\"/>"
                     "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"black\" fill-opacity=\"{:.2f}\"/>"
                     "<text x=\"{:.2f}\" y=\"{}\" text-anchor=\"middle\">{}</text></g>\n",
                     look.name, timed.action.stage, timed.action.micro_batch, timed.begin, timed.end, x, y, width,
                     row_height - 4, look.color, x, y, width, row_height - 4, shade, x + width / 2, y + 18,
                     timed.action.micro_batch);
    }
  }
  double x = left;
  for (const Kind kind : {Kind::forward, Kind::backward, Kind::weight_gradient}) {
    if (kind == Kind::weight_gradient && !schedule.splits_backward) continue;
    fmt::format_to(out, "<rect x=\"{}\" y=\"{}\" width=\"14\" height=\"14\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>\n",
                   x, height - 28, look_of(kind).color, x + 20, height - 17, look_of(kind).name);
    x += 140;
  }
  return svg + "</svg>\n";
}

}  // namespace trireme::parallel
