#pragma once

#include <optional>

#include "trireme/parallel/pipeline/pipeline_schedule.hpp"

namespace trireme::parallel {

// The receive that a forward or backward needs; none at the ends of the pipeline, from the same rank, and for weight gradients.
std::optional<PipelineAction> receive_of(const PipelineSchedule& schedule, const PipelineAction& compute);

// The send that follows a forward or backward, if any.
std::optional<PipelineAction> send_of(const PipelineSchedule& schedule, const PipelineAction& compute);

// The receive at the other end of a send.
PipelineAction receipt_of(const PipelineAction& send);

// Adds transfers to the lists of forwards, backwards and weight gradients. A send follows the action that computes its data; a
// receive is posted one action before the one that waits for it. Receives from a rank are posted in the order of its sends.
void add_transfers(PipelineSchedule& schedule);

}  // namespace trireme::parallel
