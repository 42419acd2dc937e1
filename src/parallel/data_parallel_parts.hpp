#pragma once

#include <memory>
#include <string>

#include "parallel/pipeline/pipeline.hpp"
#include "parallel/reduction/buckets.hpp"
#include "parallel/replicas/replicas.hpp"
#include "parallel/step_state.hpp"
#include "trireme/parallel/data_parallel.hpp"

namespace trireme::parallel {

// The objects that all steps of a DataParallel share.
struct DataParallel::Parts {
  Parts(Model& model, const ProcessMesh& mesh, const ParallelOptions& options);  // collective

  Step begin(std::int64_t number, int micro_batches, StepRecording* recording);
  std::uint64_t bytes_sent() const;

  const Replicas replicas;
  const std::string metrics_prefix;
  const std::unique_ptr<Pipeline> pipeline;  // null if the model is one stage
  Buckets buckets;
  StepState state;
};

}  // namespace trireme::parallel
