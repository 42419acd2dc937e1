#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "ops/matmul/matmul_plan_cuda.hpp"

namespace trireme::ops::cuda {

// The algorithm that takes least time for these operands. The host waits. A result that is overwritten is used for it; one
// that is added to keeps its values.
TimedAlgorithm fastest(MatmulPlan& plan, const MatmulProblem& problem, const std::vector<MatmulAlgorithm>& algorithms,
                       MatmulOperands operands, void* workspace, cudaStream_t stream);

}  // namespace trireme::ops::cuda
