#pragma once

#include <string>

#include "trireme/parallel/pipeline/pipeline_timeline.hpp"

namespace trireme::parallel {

// A line for each rank, time from left to right: "F3" is the forward of micro-batch 3, "F3b" that of the rank's second chunk,
// "." time in which a rank waits.
std::string draw_text(const PipelineSchedule& schedule, const PipelineTimeline& timeline);

// The same as a picture; later chunks are darker.
std::string draw_svg(const PipelineSchedule& schedule, const PipelineTimeline& timeline);

}  // namespace trireme::parallel
