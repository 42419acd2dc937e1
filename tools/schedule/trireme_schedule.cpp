// Draws a schedule of pipeline parallelism and prints its cost.
//   trireme-schedule --pipeline-parallel 4 --micro-batches 8 --schedule zb [--svg FILE]

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>

#include "command_line.hpp"
#include "drawing.hpp"
#include "trireme/core/error.hpp"

using namespace trireme::parallel;

namespace {

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  trireme::require(!file.fail(), "{} can't be written", path);
}

void print(const PipelineSchedule& schedule, const PipelineTimeline& timeline) {
  std::vector<int> activations;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) activations.push_back(peak_activations(schedule, rank));
  fmt::print("{}\n", draw_text(schedule, timeline));
  fmt::print("step            {:g}\n", timeline.seconds);
  fmt::print("waiting         {:.2f} %\n", 100 * timeline.bubble());
  fmt::print("activations     {}\n", fmt::join(activations, " "));
}

}  // namespace

int main(int argc, char** argv) {
  PipelineScheduleOptions options{.num_ranks = 4, .num_micro_batches = 8};
  StageSeconds seconds;
  double transfer = 0;
  std::string svg;
  CLI::App app(
      "Draws a schedule of pipeline parallelism in virtual time: what each rank computes and when, the fraction of time\n"
      "that ranks wait, and the most activations that each rank keeps.",
      "trireme-schedule");
  trireme::add_number(app, "--pipeline-parallel", options.num_ranks, "ranks of the pipeline")->check(trireme::at_least(1));
  trireme::add_number(app, "--micro-batches", options.num_micro_batches, "micro-batches of a step")
      ->check(trireme::at_least(1));
  app.add_option("--schedule", options.name, fmt::format("one of {}", fmt::join(pipeline_schedule_names(), ", ")))
      ->capture_default_str();
  trireme::add_number(app, "--chunks", options.num_chunks, "stages on each rank, for the interleaved schedule")
      ->check(trireme::at_least(1));
  trireme::add_number(app, "--forward", seconds.forward, "time of a rank's forward of one micro-batch")
      ->check(trireme::at_least(0));
  trireme::add_number(app, "--backward", seconds.backward, "time of the input gradients of one micro-batch")
      ->check(trireme::at_least(0));
  trireme::add_number(app, "--weight", seconds.weight_gradient, "time of the weight gradients of one micro-batch")
      ->check(trireme::at_least(0));
  trireme::add_number(app, "--transfer", transfer, "time of a message")->check(trireme::at_least(0));
  app.add_option("--svg", svg, "write a picture to this file");
  if (const auto code = trireme::parse_command_line(app, argc, argv)) return *code;
  return trireme::run_tool(app.get_name(), [&] {
    const PipelineSchedule schedule = make_pipeline_schedule(options);
    const StageSeconds of_chunk{seconds.forward / options.num_chunks, seconds.backward / options.num_chunks,
                                seconds.weight_gradient / options.num_chunks};
    const PipelineTimeline timeline =
        simulate(schedule, std::vector(static_cast<std::size_t>(schedule.num_stages()), of_chunk), transfer);
    print(schedule, timeline);
    if (!svg.empty()) write(svg, draw_svg(schedule, timeline));
    return 0;
  });
}
