// wanted: a module can't be copied or moved, .* reference
#include "trireme/nn/layers/layers.hpp"

using namespace trireme;

struct Net : nn::Module<Float32> {
  Linear linear{*this, "linear", {.in = 4, .out = 4}};
};

std::int64_t width(const Net& net) {
  auto linear = net.linear;  // auto& is meant
  return linear.weight.value().dim(0);
}
