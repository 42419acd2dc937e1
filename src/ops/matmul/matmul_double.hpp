#pragma once

#include "ops/matmul/matmul_plan.hpp"

namespace trireme::ops {

// As matmul_plan.hpp, but in double, which oneDNN does not have: plain loops, for gradient checks.
void run_matmul(const MatmulShape& shape, const double* a, const double* b, const double* bias, double* c);
Tensor<double> pack_b(const MatmulShape& shape, const double* b);

}  // namespace trireme::ops
