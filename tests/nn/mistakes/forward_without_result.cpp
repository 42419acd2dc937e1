// wanted: a layer of a list returns the input of the next layer, but this layer returns nothing
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/staged/staged.hpp"

using namespace trireme;

struct Block : nn::Module<Float32> {
  using Module::Module;
  void forward(const Stream& x) const { linear.forward(x); }
  Linear linear{*this, "linear", {.in = 4, .out = 4}};
};
struct Net : nn::Staged<Float32, Cpu, Variable<float>> {
  Net() { layers(first, block, last); }
  Linear first{*this, "first", {.in = 4, .out = 4}};
  Block block{*this, "block"};
  Linear last{*this, "last", {.in = 4, .out = 4}};
};
