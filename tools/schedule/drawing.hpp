#pragma once

#include <string>

#include "trireme/parallel/pipeline/pipeline_timeline.hpp"

namespace trireme::parallel {

// One line for each rank, time from left to right: "F3" is the forward of micro-batch 3, "F3b" the forward of the rank's second
// chunk, and "." marks time in which the rank waits.
std::string draw_text(const PipelineSchedule& schedule, const PipelineTimeline& timeline);

// The same as an SVG picture. Later chunks are darker.
std::string draw_svg(const PipelineSchedule& schedule, const PipelineTimeline& timeline);

}  // namespace trireme::parallel
