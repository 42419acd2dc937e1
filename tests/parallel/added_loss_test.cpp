// Losses that layers add by add_loss().

#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "gradient_check.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/step_graph.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::test;
using tests::elements;

namespace {

template <typename P>
struct Net : nn::Module<P> {
  nn::Linear<P> hidden{*this, "hidden", {.in = 6, .out = 12}};
  nn::Dropout<P> drop{*this, "drop", 0.3};
  nn::Linear<P> output{*this, "output", {.in = 12, .out = 3}};

  Loss<float> loss(std::int64_t first_sample) const {
    Tensor<std::int32_t> labels({4});
    for (std::int64_t row = 0; row < 4; ++row) labels.data()[row] = static_cast<std::int32_t>((first_sample + row) % 3);
    const Variable<float> x(tests::random<float>({4, 6}, static_cast<std::uint64_t>(first_sample)));
    return cross_entropy(output.forward(drop.forward(relu(hidden.forward(cast<typename P::Compute>(x))))), labels);
  }
  Variable<float> penalty() const {
    const auto weights = hidden.weight.master();
    return scale(sum(multiply(weights, weights)), 0.25F);
  }
};

struct Weight : nn::Module<Float32> {
  Parameter<float> weight = add_parameter("weight", Shape{1}, Initializer::constant(3));
};

}  // namespace

TEST_CASE("a loss that is added where it arises counts as if it were part of the loss") {
  testing::run_ranks(2, [&](const Group& world) {
    const auto train = [&](bool inside) {
      Net<MixedFloat16> net;
      net.initialize({.seed = 5});
      parallel::DataParallel replicas(net, ProcessMesh(world), {.loss_scale = {.init_scale = 64}});
      parallel::Step step = replicas.begin(0, 2);
      for (int micro = 0; micro < 2; ++micro) {
        const std::int64_t first_sample = 4 * (2 * world.rank() + micro);
        step.backward(Range{first_sample, first_sample + 4}, [&] {
          Loss<float> loss = net.loss(first_sample);
          if (inside) {
            add_loss(net.penalty());
          } else {
            loss.sum = add(loss.sum, net.penalty());
          }
          return loss;
        });
      }
      const StepSummary& summary = step.finish();
      replicas.gather_gradients();
      return std::tuple(summary.loss(), summary.gradient_norm, elements(net.store().template gradients<float>()));
    };
    const auto [loss, norm, gradients] = train(true);
    const auto [wanted_loss, wanted_norm, wanted] = train(false);
    expect(std::abs(loss - wanted_loss) < 1e-6 * wanted_loss, "a loss of {}, got {}", wanted_loss, loss);
    expect(std::abs(norm - wanted_norm) < 1e-5 * wanted_norm, "a norm of {}, got {}", wanted_norm, norm);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      expect(std::abs(gradients[i] - wanted[i]) <= 1e-5F * (1 + std::abs(wanted[i])), "gradient {}", wanted[i]);
    }
  });
}

TEST_CASE("a tape without a step takes added losses too: with a Loss by its targets, with a Variable as they are") {
  const auto gradient = [](bool as_loss) {
    Weight net;
    net.initialize();
    Tape tape;
    const auto weight = net.weight.variable();
    add_loss(scale(weight, 5));
    add_loss(Variable<float>(Tensor<float>::full({1}, 7)));  // a constant
    if (as_loss) {
      Loss<float>{.sum = scale(weight, 2), .target_weight = 4.0, .nominal_targets = 4}.backward();
    } else {
      scale(weight, 2).backward();
    }
    return net.weight.gradient().item();
  };
  CHECK(gradient(true) == (2 + 5) / 4.0F);
  CHECK(gradient(false) == 2 + 5);
}

TEST_CASE("what add_loss() can't take is refused, and without a tape it does nothing") {
  add_loss(Variable<float>(Tensor<float>::full({1}, 7)));
  Tape tape;
  CHECK_THROWS_WITH(add_loss(Variable<float>()), ContainsSubstring("an undefined Variable"));
  CHECK_THROWS_WITH(add_loss(Variable<float>(Tensor<float>::zeros({2}))), ContainsSubstring("[2]"));
  Weight net;
  net.initialize();
  add_loss(Variable<double>(Tensor<double>::full({1}, 7)));
  const Loss<float> loss{.sum = net.weight.variable(), .target_weight = 1.0, .nominal_targets = 1};
  CHECK_THROWS_WITH(loss.backward(), ContainsSubstring("of another element type"));
}

TEST_CASE("added losses stay with their own step, are recorded by a StepGraph, and are looked at for inf") {
  testing::run_ranks(1, [](const Group& world) {
    Weight net, inner_net;
    net.initialize();
    inner_net.initialize();
    parallel::DataParallel replicas(net, ProcessMesh(world));
    parallel::DataParallel inner(inner_net, ProcessMesh(world.split(0, 0, "inner")));
    optim::Sgd<Float32> optimizer(net, {.learning_rate = 0.5});
    optim::Sgd<Float32> inner_optimizer(inner_net, {.learning_rate = 0.5});
    const auto times = [](const Weight& of, float factor) {
      return Loss<float>{.sum = scale(of.weight.variable(), factor), .target_weight = 1.0, .nominal_targets = 1};
    };
    {
      parallel::Step given_up = replicas.begin(0);
      given_up.backward(0, [&] {
        add_loss(scale(net.weight.variable(), 100));
        return times(net, 1);
      });
    }
    {
      parallel::Step step = replicas.begin(0);
      step.backward(0, [&] {
        add_loss(scale(net.weight.variable(), 10));
        parallel::Step of_inner = inner.begin(0);
        of_inner.backward(0, [&] {
          add_loss(scale(inner_net.weight.variable(), 20));
          return times(inner_net, 2);
        });
        CHECK(of_inner.update(inner_optimizer));
        CHECK(of_inner.finish().loss() == 3 * 22);
        return times(net, 1);
      });
      CHECK(step.update(optimizer));
      CHECK(step.finish().loss() == 3 * 11);
    }
    CHECK(net.weight.value().item() == 3 - 0.5F * 11);
    CHECK(inner_net.weight.value().item() == 3 - 0.5F * 22);

    parallel::StepGraph<Cpu> graph(replicas, [&](parallel::Step& step, const auto& place) {
      step.backward(place.first_sample, [&] {
        add_loss(scale(net.weight.variable(), 2));
        return times(net, 1);
      });
      step.update(optimizer);
    });
    const double weight = net.weight.value().item();
    graph.run({.number = 1, .first_sample = 0});
    CHECK(graph.last_result().loss == weight * 3);
    CHECK(graph.last_result().gradient_norm == 3);

    parallel::Step step = replicas.begin(2);
    step.backward(0, [&] {
      add_loss(Variable<float>(Tensor<float>::full({1}, std::numeric_limits<float>::infinity())));
      return times(net, 1);
    });
    CHECK_FALSE(step.finish().is_finite());
  });
}
