#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "ops/matmul/matmul_plan_cuda.hpp"

namespace trireme::ops::cuda {

// Measures which algorithm is fastest for these operands. The host waits. The runs write to the result if the product
// overwrites it; a result that the product adds to keeps its values.
TimedAlgorithm fastest(MatmulPlan& plan, const MatmulProblem& problem, const std::vector<MatmulAlgorithm>& algorithms,
                       MatmulOperands operands, void* workspace, cudaStream_t stream);

}  // namespace trireme::ops::cuda
