#pragma once

#include "ops/matmul/matmul_problem_cuda.hpp"

namespace trireme::ops::cuda {

// How the algorithm of a problem is chosen: among those that the library names the one that takes least time, measured at the
// first product and kept in a file, or the first that it names.
enum class PlanChoice : std::uint8_t { timed, heuristic };

// What TRIREME_MATMUL_PLANS says, null when unset. Throws Error for another word.
PlanChoice plan_choice(const char* variable);

// The product goes into the thread's current stream. No dim may be 0. Descriptors and algorithms of problems are kept by the
// calling thread; of a problem in a graph that is being captured nothing is measured.
void run_matmul(MatmulProblem problem, const MatmulOperands& operands);

// Likewise where cuBLASLt has an algorithm; otherwise false, nothing was done, and the calling thread remembers it.
bool try_matmul(MatmulProblem problem, const MatmulOperands& operands);

}  // namespace trireme::ops::cuda
