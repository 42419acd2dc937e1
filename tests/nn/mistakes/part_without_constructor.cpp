// wanted: deleted function .*WriteUsingModuleModuleInTheClassOfThisPart
#include "trireme/nn/layers/layers.hpp"

using namespace trireme;

struct Block : nn::Module<Float32> {  // no constructors
  Linear linear{*this, "linear", {.in = 4, .out = 4}};
};
struct Net : nn::Module<Float32> {
  Block block{*this, "block"};
};
