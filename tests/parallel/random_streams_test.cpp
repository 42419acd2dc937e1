// Random numbers of a list's layers: different in each layer, and the same on any layout.
#include <array>
#include <mutex>
#include <string>
#include <vector>

#include "catch.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/staged/staged.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t width = 40;
constexpr int num_layers = 9;

struct Batch {
  Tensor<float> x;
  std::int64_t first_sample = 0;
};

using Drawn = std::vector<std::vector<float>>;

// Dropout of ones: a mask.
template <typename Drop>
Variable<float> draw(const Variable<float>& x, Drawn& drawn, const Drop& drop) {
  const Variable<float> mask = drop(Variable<float>(Tensor<float>::full({x.shape()[0], width}, 1)));
  drawn.emplace_back(mask.value().span().begin(), mask.value().span().end());
  return multiply(x, mask);
}
auto by_hand(const char* name) {
  return [name](const Variable<float>& ones) { return dropout(ones, 0.3, name); };
}
auto by(const nn::Dropout<Float32>& module) {
  return [&module](const Variable<float>& ones) { return module.forward(ones); };
}

// A list that is called inside a layer of another one.
struct Teacher : nn::Staged<Float32, Cpu, Batch> {
  explicit Teacher(Drawn& drawn) {
    const auto drop = [&drawn](const auto& x) { return draw(x, drawn, by_hand("noise")); };
    layers(layer({fc}, [this, drop](const Batch& batch) { return drop(fc.forward(batch.x)); }), layer({}, drop));
    initialize();
  }
  nn::Linear<Float32> fc{*this, "fc", {.in = width, .out = width}};
};

// Layers that have modules in common, names given by hand, one name twice in a layer, a list and a tape in a layer, a loss.
struct Net : nn::Staged<Float32, Cpu, Batch> {
  Net(const ModelContext& context, Drawn& drawn_here) : Staged(context), drawn(drawn_here), teacher(drawn_here) {
    const auto first = [this](const Batch& batch) { return draw(fc.forward(batch.x), drawn, by_hand("noise")); };
    const auto with = [this](auto... drop) {
      return [this, drop...](const Value& x) {
        Value y = x;
        ((y = draw(y, drawn, drop)), ...);
        return y;
      };
    };
    const auto nested = [this](const Value& x, const Batch& batch) {
      const Value y = draw(add(x, teacher.forward(batch)), drawn, by_hand("noise"));
      const Tape tape(*Tape::current()->options());
      return draw(Value(y.value()), drawn, by_hand("noise"));
    };
    layers(layer({fc}, first), layer({m}, with(by(m))), layer({k}, with(by(k))), layer({m, k}, with(by(m), by(k))),
           layer({m}, with(by(m))), layer({}, with(by_hand("noise"), by_hand("noise"))), layer({}, nested), layer({}, nested),
           out);
    initialize();
  }
  Loss<float> loss(const Value& y, const Batch&) const {
    const Value z = draw(draw(y, drawn, by(m)), drawn, by_hand("noise"));
    return Loss<float>{.sum = sum(multiply(z, z)), .target_weight = 1, .nominal_targets = 1};
  }

  Drawn& drawn;
  Teacher teacher;
  nn::Linear<Float32> fc{*this, "fc", {.in = width, .out = width}};
  nn::Dropout<Float32> m{*this, "m", 0.3};
  nn::Dropout<Float32> k{*this, "k", 0.3};
  nn::Linear<Float32> out{*this, "out", {.in = width, .out = width}};
};

// The masks of all ranks, in the order of the layers, and the loss.
std::pair<Drawn, double> train(int ranks, int micro_batches) {
  std::vector<Drawn> of_ranks(static_cast<std::size_t>(ranks));
  double loss = 0;
  testing::run_ranks(ranks, [&](const Group& world) {
    const ProcessMesh mesh(world, {.data = 1, .pipeline = ranks});
    const std::vector<double> costs(num_layers, 1);
    const Net net(parallel::model_context(mesh, {.layer_costs = costs}), of_ranks[static_cast<std::size_t>(world.rank())]);
    parallel::DataParallel replicas(net, mesh);
    std::vector<Batch> batches;
    for (int index = 0; index < micro_batches; ++index) {
      batches.push_back({.x = Tensor<float>::full({2, width}, 0.5F), .first_sample = 2 * index});
    }
    parallel::Step step = replicas.begin(3, micro_batches);
    step.backward(net, batches);
    if (world.rank() == 0) loss = step.finish().loss();
    step.finish();
  });
  Drawn all;
  for (const Drawn& drawn : of_ranks) all.insert(all.end(), drawn.begin(), drawn.end());
  return {all, loss};
}

}  // namespace

TEST_CASE("each layer of a list draws something else, and the same on one rank and on several") {
  const auto [alone, loss] = train(1, 1);
  CHECK(alone.size() == 18);
  for (std::size_t a = 0; a < alone.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      CAPTURE(a, b);
      CHECK(alone[a] != alone[b]);
    }
  }
  for (const int ranks : {2, 3, 4, num_layers}) {
    CAPTURE(ranks);
    const auto [masks, loss_of_ranks] = train(ranks, 1);
    CHECK(masks == alone);
    CHECK(loss_of_ranks == Approx(loss));
  }
  CHECK(train(num_layers, 2).second == Approx(train(1, 2).second));
}
