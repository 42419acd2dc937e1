#pragma once

#include "ops/matmul/matmul_plan.hpp"

namespace trireme::ops {

// The same in double, which oneDNN lacks: plain loops, for gradient checks.
void run_matmul(const MatmulShape& shape, const double* a, const double* b, const double* bias, double* c);
Tensor<double> pack_b(const MatmulShape& shape, const double* b);

}  // namespace trireme::ops
