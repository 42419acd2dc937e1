#include "ops/matmul/products_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme {

TRIREME_INSTANTIATE(FLOATS, matmul, Cuda)
TRIREME_INSTANTIATE(FLOATS, outer, Cuda)
TRIREME_INSTANTIATE(FLOATS, dot, Cuda)
TRIREME_EACH(FLOATS, TRIREME_EINSUMS, Cuda)

}  // namespace trireme
