// wanted: .*using Module::Module;
#include "trireme/nn/base/module_list.hpp"
#include "trireme/nn/layers/layers.hpp"

using namespace trireme;

struct Block : nn::Module<Float32> {  // no constructors
  Linear linear{*this, "linear", {.in = 4, .out = 4}};
};
struct Net : nn::Module<Float32> {
  nn::ModuleList<Block> blocks{*this, "block", 4};
};
