#pragma once

#include <optional>

#include "trireme/parallel/pipeline/pipeline_schedule.hpp"

namespace trireme::parallel {

// The message that brings what a forward or backward needs; none at the ends of the pipeline, for what comes from the same
// rank, and for weight gradients.
std::optional<PipelineAction> receive_of(const PipelineSchedule& schedule, const PipelineAction& compute);

// The message that a forward or backward makes, if any.
std::optional<PipelineAction> send_of(const PipelineSchedule& schedule, const PipelineAction& compute);

// The receive at the other end of a send, and the rank that posts it.
PipelineAction receipt_of(const PipelineAction& send);

// Gives the lists of forwards, backwards and weight gradients their transfers: a send follows what it sends, a receive is
// posted before the action ahead of the one that waits for it. Two ranks post receives in the order of the other's sends.
void add_transfers(PipelineSchedule& schedule);

}  // namespace trireme::parallel
