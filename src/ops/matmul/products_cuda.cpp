#include "ops/matmul/products_on.hpp"

namespace trireme {

TRIREME_INSTANTIATE_PRODUCTS(float, Cuda);
TRIREME_INSTANTIATE_PRODUCTS(double, Cuda);
TRIREME_INSTANTIATE_PRODUCTS(bfloat16, Cuda);
TRIREME_INSTANTIATE_PRODUCTS(float16, Cuda);

}  // namespace trireme
