// An operation of one expression, in a file that trireme_map_sources() compiles.
#include <cmath>
#include <trireme/autograd/operations/map.hpp>

using namespace trireme;

int main() {
  const auto x = Tensor<float>::full({1000}, 0.5F);
  const auto y = map([](auto value) { return value * sigmoid(value); }, x);
  return std::abs(y.at(999) - 0.3112297F) < 1e-6F ? 0 : 1;
}
