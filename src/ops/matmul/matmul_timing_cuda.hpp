#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "ops/matmul/matmul_plan_cuda.hpp"

namespace trireme::ops::cuda {

// The fastest algorithm for these operands. The host waits. The runs overwrite the result, unless the product adds to it.
TimedAlgorithm fastest(MatmulPlan& plan, const MatmulProblem& problem, const std::vector<MatmulAlgorithm>& algorithms,
                       MatmulOperands operands, void* workspace, cudaStream_t stream);

}  // namespace trireme::ops::cuda
