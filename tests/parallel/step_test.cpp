#include "trireme/parallel/step/step.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "parallel/step_net.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/optim/moving_average.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::test;

TEST_CASE("calls of a step in the wrong order are refused") {
  testing::run_ranks(1, [&](const Group& world) {
    Net<Float32> net;
    net.initialize({.seed = 5});
    parallel::DataParallel replicas(net, ProcessMesh(world));
    optim::Sgd<Float32> optimizer(net);
    const Batch batch = batch_of(world, 0, 1, 0);
    const auto loss = [&] { return net.loss(batch); };
    CHECK_THROWS_WITH(replicas.begin(-1), ContainsSubstring("numbered from 0 on, got -1"));
    CHECK_THROWS_WITH(replicas.begin(0, 0), ContainsSubstring("at least one micro-batch, got 0"));
    {
      parallel::Step step = replicas.begin(0);
      CHECK_THROWS_WITH(replicas.begin(1), ContainsSubstring("step 1 was begun while step 0 is open"));
      CHECK_THROWS_WITH(step.finish(), ContainsSubstring("finish() after 0 of 1 micro-batches"));
      CHECK(step.is_over());  // what fails in finish() ends the step
      CHECK_THROWS_WITH(step.finish(), ContainsSubstring("finish() of step 0 after its end"));
      CHECK_THROWS_WITH(step.update(optimizer), ContainsSubstring("after its end"));
    }
    {
      parallel::Step step = replicas.begin(0);
      CHECK_THROWS_WITH(step.backward(batch,
                                      [&] {
                                        step.backward(batch, loss);
                                        return net.loss(batch);
                                      }),
                        ContainsSubstring("inside its own loss"));
      CHECK_THROWS_WITH(step.backward(batch, loss), ContainsSubstring("after a failed backward()"));
      CHECK_THROWS_WITH(step.finish(), ContainsSubstring("after a backward() that has failed"));
    }
    parallel::Step step = replicas.begin(0);
    step.ask({.stop = true});
    step.ask({});  // takes nothing back
    step.backward(batch, loss);
    const StepSummary& summary = step.finish();
    CHECK((summary.requests.stop && !summary.requests.checkpoint));
    CHECK(&step.finish() == &summary);
    CHECK_THROWS_WITH(step.backward(batch, loss), ContainsSubstring("after its finish()"));
    CHECK_THROWS_WITH(step.ask({}), ContainsSubstring("ask() comes before finish()"));
    CHECK(step.update(optimizer));
    CHECK(step.finish().loss() == summary.loss());
    CHECK_THROWS_WITH(step.backward(batch, loss), ContainsSubstring("after its end"));
    CHECK_THROWS_WITH(step.update(optimizer), ContainsSubstring("a step has one"));
    {
      parallel::Step inside = replicas.begin(1);
      std::optional<parallel::Step> elsewhere;
      CHECK_THROWS_WITH(inside.backward(batch,
                                        [&] {
                                          elsewhere.emplace(std::move(inside));
                                          return net.loss(batch);
                                        }),
                        ContainsSubstring("was moved or given up inside its own loss"));
    }
    parallel::Step next = replicas.begin(1);  // although the one before is still there
    parallel::Step moved = std::move(next);
    moved.backward(batch, loss);
    CHECK(moved.update(optimizer));
  });
}

namespace elsewhere {

// A batch as a loader gives it, and as a model on another device takes it.
struct Loaded {
  std::int64_t first_sample = 0;
  float x = 0;
};
struct There {
  std::int64_t first_sample = 0;
  Tensor<float> x = {};
};
struct Device {};

template <typename D>
There on_device(const Loaded& batch) {
  return {.first_sample = batch.first_sample, .x = Tensor<float>::full({2, 6}, batch.x)};
}

// The model's type tells a step to which device batches go.
struct Net : nn::Module<Float32> {
  using Device = elsewhere::Device;

  nn::Linear<Float32> output{*this, "output", {.in = 6, .out = 3}};
  Variable<float> forward(const There& batch) const { return output.forward(batch.x); }
  Loss<float> loss(const Variable<float>& y, const There& batch) const {
    return mse_loss(y, Tensor<float>::full({2, 3}, static_cast<float>(batch.first_sample)));
  }
};

}  // namespace elsewhere

TEST_CASE("a step brings the batches of a model to its device, and takes its loss") {
  testing::run_ranks(2, [](const Group& world) {
    const auto trained = [&](bool by_hand) {
      elsewhere::Net net;
      net.initialize({.seed = 5});
      parallel::DataParallel replicas(net, ProcessMesh(world));
      optim::Sgd<Float32> optimizer(net, {.learning_rate = 0.1});
      for (int number = 0; number < 3; ++number) {
        const std::vector<elsewhere::Loaded> batches{{.first_sample = world.rank(), .x = 0.5F},
                                                     {.first_sample = 2 + world.rank(), .x = 0.25F}};
        parallel::Step step = replicas.begin(number, 2);
        if (by_hand) {
          for (const elsewhere::Loaded& loaded : batches) {
            const auto batch = on_device<elsewhere::Device>(loaded);
            step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
          }
        } else {
          step.backward(net, batches);
        }
        step.update(optimizer);
      }
      return net.store().read_values<float>(0);
    };
    const auto expected = trained(true), got = trained(false);
    require(std::ranges::equal(got.span(), expected.span()), "other weights than by hand");
  });
}

TEST_CASE("ranks that begin different steps all learn who began which") {
  testing::run_ranks(2, [&](const Group& world) {
    Net<Float32> net;
    net.initialize({.seed = 5});
    parallel::DataParallel replicas(net, ProcessMesh(world));
    const Batch batch = batch_of(world, 0, 1, 0);
    parallel::Step step = replicas.begin(7 + world.rank());
    step.backward(batch, [&] { return net.loss(batch); });
    expect_error(
        ErrorCode::rank_mismatch, [&] { step.finish(); }, "rank 0 has begin = 7, rank 1 has begin = 8");
  });
}

TEST_CASE("optimizers whose settings differ between ranks are refused at their first update") {
  testing::run_ranks(2, [&](const Group& world) {
    Net<Float32> net;
    net.initialize({.seed = 5});
    parallel::DataParallel replicas(net, ProcessMesh(world));
    optim::Sgd<Float32> optimizer(net, {.learning_rate = 0.5, .momentum = 0.1 * world.rank()});
    const Batch batch = batch_of(world, 0, 1, 0);
    parallel::Step step = replicas.begin(0);
    step.backward(batch, [&] { return net.loss(batch); });
    expect_error(
        ErrorCode::rank_mismatch, [&] { step.update(optimizer); }, "rank 0 has momentum = 0, rank 1 has momentum = 0.1");
  });
}

TEST_CASE("an optimizer of another model is refused, also where float16 overflows") {
  testing::run_ranks(1, [&](const Group& world) {
    Net<MixedFloat16> net;
    Net<MixedFloat16> other;
    net.initialize();
    other.initialize();
    parallel::DataParallel replicas(net, ProcessMesh(world), {.loss_scale = {.init_scale = 0x1p60}});
    optim::Sgd<MixedFloat16> of_other(other);
    optim::Sgd<MixedFloat16> optimizer(net, {.learning_rate = 0.5});
    const Batch batch = batch_of(world, 0, 1, 0);
    {
      parallel::Step step = replicas.begin(0);
      step.backward(batch, [&] { return net.loss(batch); });
      CHECK_FALSE(step.finish().is_finite());
      CHECK_THROWS_WITH(step.update(of_other), ContainsSubstring("the step summary is that of another model"));
      CHECK(step.is_over());
    }
    CHECK(of_other.skipped_steps() == 0);
    CHECK(replicas.scaler().scale() == 0x1p60);
    parallel::Step step = replicas.begin(0);
    step.backward(batch, [&] { return net.loss(batch); });
    CHECK_FALSE(step.update(optimizer, {.learning_rate = 0.25}));
    CHECK(optimizer.learning_rate() == 0.25);
    CHECK(replicas.scaler().scale() == 0x1p59);
  });
}

TEST_CASE("any number is a loss, the mean of which over micro-batches and ranks is followed") {
  testing::run_ranks(2, [&](const Group& world) {
    struct Weight : nn::Module<Float32> {
      Parameter<float> parameter = add_parameter("weight", {2}, Initializer::constant(1));
    };
    Weight model;
    model.initialize();
    const Parameter<float>& parameter = model.parameter;
    parallel::DataParallel replicas(model, ProcessMesh(world));
    optim::Sgd<Float32> optimizer(model, {.learning_rate = 1});
    parallel::Step step = replicas.begin(0, 2);
    for (int micro = 0; micro < 2; ++micro) {
      const float factor = static_cast<float>(1 + 2 * world.rank() + micro);  // 1 to 4
      step.backward(0, [&] { return sum(scale(parameter.variable(), factor)); });
    }
    expect(step.finish().loss() == 5, "the mean of 2, 4, 6 and 8, not {}", step.finish().loss());
    step.update(optimizer);
    expect(parameter.value().data()[0] == 1 - 2.5F, "a step along the mean of 1 to 4");
    parallel::Step wide = replicas.begin(1);
    expect_error(
        ErrorCode::invalid_argument, [&] { wide.backward(0, [&] { return parameter.variable(); }); }, "Variable of shape [2]");
  });
}

// One of two nets that share their data: the loss of the outer one's step contains a step of the inner one.
struct Trained {
  Trained(const Group& world, std::string_view name, std::uint64_t seed)
      : replicas(net, ProcessMesh(world.split(0, world.rank(), name))) {
    net.initialize({.seed = seed});
  }

  Net<Float32> net;
  parallel::DataParallel replicas;
  optim::Sgd<Float32> optimizer{net, {.learning_rate = 0.1}};
};

TEST_CASE("a loss that reads another model before the step that updates it is refused") {
  testing::run_ranks(1, [&](const Group& world) {
    Trained outer(world, "outer", 5);
    Trained inner(world, "inner", 6);
    const auto train = [&](std::int64_t number, bool reads_before, bool updates) {
      const Batch batch = batch_of(world, number, 1, 0);
      parallel::Step step = outer.replicas.begin(number);
      step.backward(batch, [&] {
        std::optional<Loss<float>> of_both;
        if (reads_before) of_both = inner.net.loss(batch);
        {
          parallel::Step within = inner.replicas.begin(number);
          within.backward(batch, [&] { return inner.net.loss(batch); });
          if (updates) within.update(inner.optimizer);
        }
        if (!reads_before) of_both = inner.net.loss(batch);
        Loss<float> loss = outer.net.loss(batch);
        loss.sum = add(loss.sum, of_both->sum);
        return loss;
      });
      step.update(outer.optimizer);
    };
    train(0, false, true);
    train(1, true, false);  // given up: the values are those of before
    test::expect_error(
        ErrorCode::invalid_argument, [&] { train(2, true, true); }, "was updated between the forward pass that read it",
        "after its optimizer's step");
    train(3, false, true);
    inner.optimizer.set_learning_rate(0);  // updated, but to the same values
    train(4, true, true);
  });
}

TEST_CASE("a loss whose model gets other values before its backward pass is refused") {
  Net<Float32> net;
  net.initialize({.seed = 5});
  optim::ExponentialMovingAverage average(net, {.decay = 0.9});
  average.update();
  const Batch batch{.x = Tensor<float>::full({rows, 6}, 1), .labels = Tensor<std::int32_t>::zeros({rows})};
  const std::vector<std::function<void()>> changes{[&] { average.swap(); }, [&] { net.initialize({.seed = 6}); }};
  for (const auto& change : changes) {
    Tape tape({.seed = 1});
    const Loss<float> loss = net.loss(batch);
    change();
    expect_error(
        ErrorCode::invalid_argument, [&] { loss.backward(); }, "was updated between the forward pass");
  }
}

TEST_CASE("steps nest, and what both draw differs") {
  testing::run_ranks(1, [&](const Group& world) {
    Trained outer(world, "outer", 5);
    Trained inner(world, "inner", 6);
    Tensor<float> ones = Tensor<float>::full({rows, 40}, 1);
    std::vector<Tensor<float>> drawn;
    const auto draw = [&] { drawn.push_back(inner.net.drop.forward(Variable<float>(ones)).value()); };
    for (std::int64_t number = 0; number < 2; ++number) {
      const Batch batch = batch_of(world, number, 1, 0);
      parallel::Step step = outer.replicas.begin(number);
      step.backward(batch, [&] {
        const auto loss = outer.net.loss(batch);
        draw();
        parallel::Step within = inner.replicas.begin(number);
        within.backward(batch, [&] {
          draw();
          return inner.net.loss(batch);
        });
        CHECK(within.update(inner.optimizer));
        draw();
        return loss;
      });
      CHECK(step.update(outer.optimizer));
    }
    REQUIRE(drawn.size() == 6);
    for (std::size_t a = 0; a < drawn.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) CHECK_FALSE(std::ranges::equal(drawn[a].span(), drawn[b].span()));
    }
  });
}
