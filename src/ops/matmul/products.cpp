#include "ops/matmul/products_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme {

TRIREME_INSTANTIATE(FLOATS, matmul, Cpu)
TRIREME_INSTANTIATE(FLOATS, outer, Cpu)
TRIREME_INSTANTIATE(FLOATS, dot, Cpu)
TRIREME_EACH(FLOATS, TRIREME_EINSUMS, Cpu)

}  // namespace trireme
