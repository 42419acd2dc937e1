#include "trireme/parallel/step/step.hpp"

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "trireme/autograd/reductions.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/nn/attention/encoder_layer.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/optim/moving_average.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::test;

namespace {

constexpr std::int64_t rows = 4;  // of a micro-batch

struct Batch {
  std::int64_t first_sample = 0;
  Tensor<float> x = {};
  Tensor<std::int32_t> labels = {};
};

Batch batch_of(const Group& world, std::int64_t step, int micro_batches, int micro) {
  Batch batch{.first_sample = ((step * world.size() + world.rank()) * micro_batches + micro) * rows,
              .x = Tensor<float>({rows, 6}),
              .labels = Tensor<std::int32_t>({rows})};
  for (std::int64_t i = 0; i < batch.x.numel(); ++i) {
    batch.x.data()[i] = static_cast<float>(philox_normal(1, 2, static_cast<std::uint64_t>(batch.first_sample * 6 + i)));
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    batch.labels.data()[row] = static_cast<std::int32_t>((batch.first_sample + row) % 3);
  }
  return batch;
}

// It counts its forward passes in a buffer, which models that train with fixed bits can't have.
template <typename P>
struct Net : nn::Module<P> {
  explicit Net(bool counts = true) {
    if (counts) passes = this->add_buffer("passes", {1}, 0, {.reduction = BufferReduction::max});
  }

  nn::Linear<P> hidden{*this, "hidden", {.in = 6, .out = 40}};
  nn::Dropout<P> drop{*this, "drop", 0.3};
  nn::Linear<P> output{*this, "output", {.in = 40, .out = 3}};
  Buffer<float> passes;

  Loss<float> loss(const Batch& batch) const {
    if (passes.defined()) passes.value().data()[0] += 1;
    const auto x = cast<typename P::Compute>(Variable<float>(batch.x));
    return cross_entropy(output.forward(drop.forward(relu(hidden.forward(x)))), batch.labels);
  }
};

struct Thrown : std::runtime_error {
  Thrown() : std::runtime_error("thrown by a test") {}
};

// Where a step is given up.
enum class Place : std::uint8_t {
  nowhere,
  after_begin,
  after_first_micro_batch,
  after_last_micro_batch,
  after_finish,
  in_first_loss,
  in_last_loss,
  in_update,
};
constexpr Place places[] = {Place::after_begin,  Place::after_first_micro_batch, Place::after_last_micro_batch,
                            Place::after_finish, Place::in_first_loss,           Place::in_last_loss,
                            Place::in_update};

struct Setup {
  parallel::ParallelOptions options = {};
  int ranks = 2;
  int micro_batches = 2;
  Place given_up = Place::nowhere;  // step 1; it is then taken whole
  bool power_sgd = false;           // a hook of each rank
};

// Gets as far as `place`; true where it took the whole step.
template <typename P>
bool take_step(parallel::DataParallel& replicas, const Net<P>& net, optim::AnyOptimizer& optimizer, const Group& world,
               std::int64_t number, const Setup& setup, Place place) {
  parallel::Step step = replicas.begin(number, setup.micro_batches);
  if (place == Place::after_begin) return false;
  for (int micro = 0; micro < setup.micro_batches; ++micro) {
    const bool last = micro + 1 == setup.micro_batches;
    const Batch batch = batch_of(world, number, setup.micro_batches, micro);
    step.backward(batch, [&] {
      const auto loss = net.loss(batch);
      if (place == (last ? Place::in_last_loss : Place::in_first_loss)) throw Thrown();
      return loss;
    });
    if (place == (last ? Place::after_last_micro_batch : Place::after_first_micro_batch)) return false;
  }
  if (place == Place::after_finish) {
    expect(step.finish().step == number, "the summary of another step");
    return false;
  }
  if (place == Place::in_update) {
    step.update(optimizer, {.learning_rate = -1});
    return false;
  }
  step.update(optimizer, {.learning_rate = 0.1 / static_cast<double>(number + 1), .clip_norm = 1});
  return true;
}

template <typename P>
std::vector<float> train(const Setup& setup) {
  std::vector<float> result;
  std::mutex mutex;
  testing::run_ranks(setup.ranks, [&](const Group& world) {
    Net<P> net(!std::holds_alternative<parallel::FixedBits>(setup.options.sum));
    net.initialize({.seed = 5});
    const auto passes = [&net] { return net.passes.defined() ? net.passes.value().data()[0] : 0; };
    parallel::ParallelOptions options = setup.options;
    if (setup.power_sgd) std::get<parallel::Hooked>(options.sum).compression.hook = parallel::power_sgd_hook({.rank = 2});
    parallel::DataParallel replicas(net, ProcessMesh(world), options);
    optim::Sgd<P> optimizer(net, {.momentum = 0.9});
    for (std::int64_t number = 0; number < 4; ++number) {
      if (number == 1 && setup.given_up != Place::nowhere) {
        const double scale = replicas.scaler().scale();
        try {
          const bool whole = take_step(replicas, net, optimizer, world, number, setup, setup.given_up);
          expect(!whole, "the step was taken");
        } catch (const Thrown&) {
          expect(setup.given_up == Place::in_first_loss || setup.given_up == Place::in_last_loss, "the loss did not throw");
        } catch (const Error&) {
          expect(setup.given_up == Place::in_update, "another error than that of update()");
        }
        expect(replicas.scaler().scale() == scale, "another loss scale");
        for (int index = 0; index < net.store().num_parameters(); ++index)
          expect(!net.store().has_gradient(index), "a gradient is left");
        expect(passes() == (net.passes.defined() ? static_cast<float>(setup.micro_batches) : 0), "{} passes are counted",
               passes());
      }
      const bool whole = take_step(replicas, net, optimizer, world, number, setup, Place::nowhere);
      expect(whole, "step {} was not taken", number);
    }
    const std::lock_guard lock(mutex);
    const auto values = net.store().template values<float>().span();
    std::vector<float> mine(values.begin(), values.end());
    mine.push_back(passes());
    if (result.empty()) result = mine;
    expect(result == mine, "the ranks differ");
  });
  return result;
}

parallel::ParallelOptions with(parallel::GradientSum sum, parallel::Sharding sharding) {
  return {.sum = std::move(sum), .sharding = sharding, .buckets = {.bytes = 512, .first_bytes = 64, .slice_bytes = 256}};
}

}  // namespace

TEMPLATE_TEST_CASE("a step that is given up anywhere leaves nothing behind", "", Float32, MixedBfloat16, MixedFloat16) {
  using parallel::Sharding;
  for (const Sharding sharding : {Sharding::none, Sharding::optimizer}) {
    const std::vector<parallel::GradientSum> sums{
        parallel::Plain{}, parallel::FixedBits{.micro_batches = 4},
        parallel::Hooked{
            {.hook = parallel::float16_hook(), .only_if_faster = false, .between = parallel::CompressionBetween::ranks}}};
    for (const parallel::GradientSum& sum : sums) {
      Setup setup{.options = with(sum, sharding)};
      const std::vector<float> wanted = train<TestType>(setup);
      for (const Place place : places) {
        CAPTURE(sum.index(), sharding, place);
        setup.given_up = place;
        CHECK(train<TestType>(setup) == wanted);
      }
    }
  }
}

TEST_CASE("steps of a run that tunes its buckets can be given up") {
  for (const Place place : places) {
    Setup setup{.options = with(parallel::Plain{.tuning = {.on = true}}, parallel::Sharding::none)};
    setup.given_up = place;
    CHECK(train<Float32>(setup).size() > 1);
  }
}

// How far its exchanges have come when the step is given up depends on time. The hook keeps its errors.
TEST_CASE("steps whose hook has several exchanges can be given up") {
  for (const parallel::Sharding sharding : {parallel::Sharding::none, parallel::Sharding::optimizer}) {
    for (const Place place : places) {
      CAPTURE(sharding, place);
      Setup setup{
          .options =
              with(parallel::Hooked{{.hook = nullptr, .only_if_faster = false, .between = parallel::CompressionBetween::ranks}},
                   sharding),
          .power_sgd = true};
      setup.given_up = place;
      CHECK(train<Float32>(setup).size() > 1);
    }
  }
}

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
      CHECK_THROWS_WITH(step.backward(batch, loss), ContainsSubstring("after one that has failed"));
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

// What a model says of itself is enough to know where batches go.
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
      CHECK_THROWS_WITH(step.update(of_other), ContainsSubstring("that of another model than this optimizer's"));
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
        ErrorCode::invalid_argument, [&] { wide.backward(0, [&] { return parameter.variable(); }); }, "not one of shape [2]");
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

namespace {

// Series of two channels, each of which is a row of its own from the first layer on.
struct Series {
  Tensor<float> x = {};  // [samples, channels, time]
  Tensor<float> y = {};  // [samples]
  std::int64_t first_sample = 0;
};
Series series_of(std::int64_t first, std::int64_t samples) {
  Series series{.x = Tensor<float>({samples, 2, 12}), .y = Tensor<float>({samples}), .first_sample = first};
  for (std::int64_t i = 0; i < series.x.numel(); ++i) {
    series.x.data()[i] = static_cast<float>(philox_normal(1, 3, static_cast<std::uint64_t>(first * 24 + i)));
  }
  for (std::int64_t i = 0; i < samples; ++i) series.y.data()[i] = static_cast<float>((first + i) % 5);
  return series;
}

struct ByChannel : nn::Module<Float32> {
  explicit ByChannel(double probability) : drops(probability) {}
  double drops;
  Linear patch{*this, "patch", {.in = 4, .out = 8}};
  TransformerEncoderLayer layer{*this, "layer", {.d_model = 8, .nhead = 2, .dim_feedforward = 16, .dropout = drops}};
  Linear head{*this, "head", {.in = 8, .out = 1}};

  Loss<float> loss(const Tensor<float>& x, const Tensor<float>& y) const {
    const auto rows_of_channels = patch.forward(reshape(Variable<float>(x), {-1, 3, 4}));
    const auto out = head.forward(layer.forward({.stream = rows_of_channels}, 3).settled().stream);
    return mse_loss(mean(reshape(out, {y.dim(0), -1}), {1}), y);
  }
};

// Of each step, over all ranks.
std::vector<double> losses_by_channel(int ranks, int micro_batches) {
  std::vector<double> losses(3);
  testing::run_ranks(ranks, [&](const Group& world) {
    ByChannel net(0.3);
    net.initialize({.seed = 4});
    parallel::DataParallel replicas(net, ProcessMesh(world));
    optim::Sgd<Float32> optimizer(net, {.learning_rate = 0.05});
    const std::int64_t samples = 8 / (world.size() * micro_batches);
    for (std::int64_t number = 0; number < 3; ++number) {
      parallel::Step step = replicas.begin(number, micro_batches);
      for (int micro = 0; micro < micro_batches; ++micro) {
        const Series batch = series_of(number * 8 + (world.rank() * micro_batches + micro) * samples, samples);
        step.backward(batch, [&] { return net.loss(batch.x, batch.y); });
      }
      step.update(optimizer);
      const double loss = step.finish().loss();
      if (world.rank() == 0) losses[static_cast<std::size_t>(number)] = loss;
    }
  });
  return losses;
}

}  // namespace

TEST_CASE("what is drawn for rows that a layer makes of samples does not depend on ranks and micro-batches") {
  const auto alone = losses_by_channel(1, 1);
  for (const auto& [ranks, micro_batches] : {std::pair(2, 1), std::pair(1, 4), std::pair(4, 2)}) {
    CAPTURE(ranks, micro_batches);
    const auto others = losses_by_channel(ranks, micro_batches);
    for (std::size_t step = 0; step < alone.size(); ++step) CHECK(others[step] == Approx(alone[step]).epsilon(1e-4));
  }
}

TEST_CASE("a batch says how many samples it has, or nothing is drawn for it") {
  testing::run_ranks(1, [](const Group& world) {
    ByChannel net(0.3);
    net.initialize();
    parallel::DataParallel replicas(net, ProcessMesh(world));
    const Series two = series_of(8, 2);
    const auto loss = [&] { return net.loss(two.x, two.y); };
    const auto fails = [&](const auto& batch) { return [&] { replicas.begin(0).backward(batch, loss); }; };
    struct Flat {
      Tensor<float> x = {};  // [samples * channels, time]
      Tensor<float> y = {};  // [samples]
      std::int64_t first_sample = 8;
    };
    const Flat flat{.x = two.x.reshape({4, 12}), .y = two.y};
    expect_error(ErrorCode::invalid_argument, fails(flat), "nobody says how many samples they belong to");
    expect_error(ErrorCode::invalid_argument, fails(8), "layer.self_attn: dropout: 4 rows are drawn for");
    struct Said {
      std::int64_t samples = 2;
      Tensor<float> x = {};
      std::int64_t first_sample = 8;
    };
    const auto backward = [&](const auto& batch) {
      parallel::Step step = replicas.begin(0);
      step.backward(batch, loss);
      return step.finish().loss();
    };
    const double wanted = backward(two);
    CHECK(backward(Said{.x = flat.x}) == wanted);
    CHECK(backward(Range{8, 10}) == wanted);
    CHECK(backward(0) != wanted);  // other samples
  });
}

TEST_CASE("an argument that a layer refuses in a loss is told with the layer and the step") {
  testing::run_ranks(1, [](const Group& world) {
    ByChannel net(0);
    net.initialize();
    parallel::DataParallel replicas(net, ProcessMesh(world));
    const auto fails = [&] {
      replicas.begin(3).backward(0, [&] { return sum(net.layer.linear2.forward(Tensor<float>({2, 5}))); });
    };
    expect_error(ErrorCode::invalid_argument, fails, "layer.linear2: linear: x [2, 5] does not fit");
    expect_error(ErrorCode::invalid_argument, fails, "in the loss of step 3");
  });
}
