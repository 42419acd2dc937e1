#include "map/swiglu.hpp"

#include "trireme/autograd/operations/map.hpp"

using namespace trireme;

Variable<float> swiglu_product(const Variable<float>& gate, const Variable<float>& up) {
  return map([](auto g, auto u) { return g * sigmoid(g) * u; }, gate, up);
}
