// wanted: could not convert .*"linear".* to .*Linear
#include "trireme/nn/layers/layers.hpp"

using namespace trireme;

struct Net : nn::Module<Float32> {
  Linear linear{*this, "linear"};
};
