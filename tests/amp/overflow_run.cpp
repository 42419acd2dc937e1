#include "amp/overflow_run.hpp"

#include <vector>

#include "trireme/amp/grad_scaler.hpp"
#include "trireme/nn/layers.hpp"
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
  parallel::DataParallel data_parallel(net, ProcessMesh(world), {.sharding = sharding});
  optim::AdamW<MixedFloat16> optimizer(net, {.learning_rate = 0.1});
  amp::GradScaler scaler({.init_scale = 1024});
  for (int step = 0; step < 4; ++step) {
    const std::vector<float> before = net.values();
    const bool overflows = step == 1 && world.rank() == world.size() - 1;
    auto reduction = data_parallel.begin_step();
    Tape tape;
    reduction.listen(tape);
    const auto x = Tensor<float16>::full({2, 4}, float16(overflows ? 60000.0F : 0.5F));
    const auto wide = scale(net.layer.forward(Variable<float16>(x)), overflows ? 1e4F : 1.0F);
    const auto loss = cross_entropy(wide, Tensor<std::int32_t>::from({2}, std::vector<std::int32_t>{0, 1}));
    scaler.scale(loss).backward();
    reduction.add(loss);
    const bool stepped = scaler.step(optimizer, reduction.finish());
    scaler.update();
    world.agree([&] {
      require(stepped == (step != 1), "rank {} {} step {}", world.rank(), stepped ? "took" : "skipped", step);
      require((before == net.values()) == (step == 1), "rank {}: values and step {}", world.rank(), step);
      require(scaler.scale() == (step == 0 ? 1024 : 512), "rank {}: scale {}", world.rank(), scaler.scale());
      require_rounded(net.store());
    });
  }
}

}  // namespace

void expect_all_skip_the_overflow(const Group& world) {
  for (const auto sharding : {parallel::Sharding::none, parallel::Sharding::optimizer}) run(world, sharding);
}

}  // namespace trireme::tests
