#include "amp/overflow_run.hpp"

#include <vector>

#include "trireme/nn/layers/layers.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/parallel/data_parallel.hpp"

namespace trireme::tests {
namespace {

struct Net : nn::Module<MixedFloat16> {
  nn::Linear<MixedFloat16> layer{*this, "layer", {.in = 4, .out = 4}};

  std::vector<float> values() {
    const auto all = this->store().values<float>().span();
    return {all.begin(), all.end()};
  }
};

void require_rounded(FlatStore& store) {
  for (int index = 0; index < store.num_parameters(); ++index) {
    const auto master = store.values<float>(index);
    const auto rounded = store.compute_values<float16>(index);
    for (std::int64_t i = 0; i < master.numel(); ++i) {
      require(float16(master.data()[i]).bits() == rounded.data()[i].bits(), "element {} was not rounded", i);
    }
  }
}

void run(const Group& world, parallel::Sharding sharding) {
  Net net;
  net.initialize({.seed = 3});
  parallel::DataParallel replicas(net, ProcessMesh(world), {.sharding = sharding, .loss_scale = {.init_scale = 1024}});
  optim::AdamW<MixedFloat16> optimizer(net, {.learning_rate = 0.1});
  for (int number = 0; number < 4; ++number) {
    const std::vector<float> before = net.values();
    const bool overflows = number == 1 && world.rank() == world.size() - 1;
    parallel::Step step = replicas.begin(number);
    step.backward(2 * world.rank(), [&] {
      const auto x = Tensor<float16>::full({2, 4}, float16(overflows ? 60000.0F : 0.5F));
      const auto wide = scale(net.layer.forward(Variable<float16>(x)), overflows ? 1e4F : 1.0F);
      return cross_entropy(wide, Tensor<std::int32_t>::from({2}, std::vector<std::int32_t>{0, 1}));
    });
    const bool updated = step.update(optimizer);
    const double loss_scale = replicas.scaler().scale();
    world.agree([&] {
      require(updated == (number != 1), "rank {} {} step {}", world.rank(), updated ? "took" : "skipped", number);
      require((before == net.values()) == (number == 1), "rank {}: values and step {}", world.rank(), number);
      require(loss_scale == (number == 0 ? 1024 : 512), "rank {}: scale {}", world.rank(), loss_scale);
      require_rounded(net.store());
    });
  }
}

}  // namespace

void expect_all_skip_the_overflow(const Group& world) {
  for (const auto sharding : {parallel::Sharding::none, parallel::Sharding::optimizer}) run(world, sharding);
}

}  // namespace trireme::tests
