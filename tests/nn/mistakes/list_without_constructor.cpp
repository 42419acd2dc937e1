// wanted: .*using Module::Module;
#include "trireme/nn/layers.hpp"
#include "trireme/nn/module_list.hpp"

using namespace trireme;

struct Block : nn::Module<Float32> {  // no constructors
  Linear linear{*this, "linear", {.in = 4, .out = 4}};
};
struct Net : nn::Module<Float32> {
  nn::ModuleList<Block> blocks{*this, "block", 4};
};
