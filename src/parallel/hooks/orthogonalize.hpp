#pragma once

#include "trireme/tensor/tensor.hpp"

namespace trireme::parallel {

// Makes the columns of `matrix` [rows, columns] orthonormal by two passes of Gram-Schmidt in double, with the same bits for the
// same input. A column that depends on those before it becomes zero.
void orthogonalize_columns(const Tensor<float>& matrix);

}  // namespace trireme::parallel
