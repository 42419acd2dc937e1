// wanted: a module can't be copied or moved, .* nn::ModuleList
#include "trireme/nn/layers/layers.hpp"

using namespace trireme;

struct Net : nn::Module<Float32> {
  Net() {
    for (const char* name : {"first", "second"}) layers.emplace_back(*this, name, nn::LinearOptions{.in = 4, .out = 4});
  }
  std::vector<Linear> layers;
};
