#include "ops/matmul/products_on.hpp"

namespace trireme {

TRIREME_INSTANTIATE_PRODUCTS(float, Cpu);
TRIREME_INSTANTIATE_PRODUCTS(double, Cpu);
TRIREME_INSTANTIATE_PRODUCTS(bfloat16, Cpu);
TRIREME_INSTANTIATE_PRODUCTS(float16, Cpu);

}  // namespace trireme
