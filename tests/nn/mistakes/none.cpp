// wanted: nothing, this compiles: what the other files have wrong is right here.
#include "trireme/core/bfloat16.hpp"
#include "trireme/nn/base/module_list.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/staged/staged.hpp"
#include "trireme/parallel/step/step.hpp"

using namespace trireme;

struct Block : nn::Module<MixedBfloat16> {
  using Module::Module;
  Stream forward(const Stream& x) const { return x + linear.forward(norm.forward(x)); }
  LayerNorm norm{*this, "norm", {.width = 4}};
  Linear linear{*this, "linear", {.in = 4, .out = 4}};
};
struct Batch {
  Tensor<float> x;
  std::int64_t first_sample = 0;
};
struct Net : nn::Staged<MixedBfloat16, Cpu, Batch> {
  Net() {
    layers(layer({first}, [this](const Batch& batch) { return first.forward(Variable<float>(batch.x)); }), blocks, norm);
  }
  Block first{*this, "first"};
  nn::ModuleList<Block> blocks{*this, "block", 2};
  nn::ModuleList<Linear> towers{*this, "tower", 2, nn::LinearOptions{.in = 4, .out = 4}};
  LayerNorm norm{*this, "norm", {.width = 4}};
};

void step(parallel::Step& step, const Net& net, const Batch& batch) {
  step.backward(batch, [&] { return sum(net.forward(batch)); });
}
