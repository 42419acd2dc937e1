#pragma once

#include "ops/matmul/matmul_problem_cuda.hpp"

namespace trireme::ops::cuda {

// How the algorithm of a problem is chosen. timed: the fastest of those that the library proposes, measured at the first
// product and kept in a file. heuristic: the library's first proposal.
enum class PlanChoice : std::uint8_t { timed, heuristic };

// Parses the value of TRIREME_MATMUL_PLANS; null if unset. Throws Error for an unknown word.
PlanChoice plan_choice(const char* variable);

// Launches the product in the thread's current stream. No dim may be 0. The calling thread keeps the descriptors and algorithms
// of problems. Nothing is measured while a graph is being captured.
void run_matmul(MatmulProblem problem, const MatmulOperands& operands);

// Likewise, if cuBLASLt has an algorithm. Otherwise returns false and does nothing; the calling thread remembers this.
bool try_matmul(MatmulProblem problem, const MatmulOperands& operands);

}  // namespace trireme::ops::cuda
