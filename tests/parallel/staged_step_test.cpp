// Steps of models of stages with flows of every kind, against the same model on one rank.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/norm/normalization.hpp"
#include "trireme/nn/staged/layer_costs.hpp"
#include "trireme/nn/staged/staged.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::test;

namespace {

constexpr std::int64_t width = 6;
constexpr std::int64_t rows = 4;  // of a micro-batch
constexpr int micro_batches = 4;
constexpr int steps = 4;

struct Batch {
  Tensor<float> x;
  Tensor<std::int32_t> targets;
  std::int64_t first_sample = 0;
  std::int64_t number = 0;  // of the step
};

std::vector<Batch> batches_of(std::int64_t number, int count = micro_batches) {
  std::vector<Batch> batches;
  for (int micro = 0; micro < count; ++micro) {
    Batch batch{.x = Tensor<float>({rows, width}),
                .targets = Tensor<std::int32_t>({rows}),
                .first_sample = (number * count + micro) * rows,
                .number = number};
    for (std::int64_t i = 0; i < batch.x.numel(); ++i) {
      batch.x.data()[i] = static_cast<float>(philox_normal(1, 2, static_cast<std::uint64_t>(batch.first_sample * width + i)));
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      batch.targets.data()[row] = static_cast<std::int32_t>((batch.first_sample + row) % width);
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

// Values whose shapes and number change with every micro-batch; some that are never used, and one that is no Variable.
struct Flow {
  Variable<float> x = {};
  Variable<float> side = {};
  std::vector<Variable<float>> several = {};
  Variable<float> sometimes = {};
  Tensor<std::int32_t> marks = {};

  void each(auto&& visit) { visit(x), visit(side), visit(several), visit(sometimes), visit(marks); }
};

struct Layer : nn::Module<Float32> {
  using Module::Module;
  nn::Linear<Float32> fc{*this, "fc", {.in = width, .out = width}};
};

struct Net : nn::Staged<Float32, Cpu, Batch, Flow> {
  explicit Net(const ModelContext& context = {}) : Staged(context) {
    const auto begin = [this](const Batch& batch) {
      Flow flow{.x = first.fc.forward(batch.x), .side = side.fc.forward(batch.x)};
      const std::int64_t varies = (batch.first_sample / rows + batch.number) % 3;
      for (std::int64_t i = 0; i < varies; ++i) flow.several.push_back(scale(flow.x, 0.1F * static_cast<float>(i + 1)));
      if (varies == 1) flow.sometimes = Variable<float>(Tensor<float>::full({varies + 1, 3}, 0.5F));
      flow.marks = Tensor<std::int32_t>::full({varies}, static_cast<std::int32_t>(batch.first_sample));
      return flow;
    };
    const auto inner = [this](std::size_t index) {
      return layer({middle[index], drop}, [this, index](const Flow& from, const Batch& batch) {
        Flow flow = from;
        flow.x = add(from.x, drop.forward(tanh(middle[index].fc.forward(from.x))));
        for (auto& one : flow.several) one = tanh(one);
        for (const std::int32_t mark : flow.marks.span()) require(mark == batch.first_sample, "marks of another micro-batch");
        return flow;
      });
    };
    const auto end = [this](const Flow& flow, const Batch& batch) {
      Variable<float> y = last.fc.forward(flow.x);
      if (batch.number % 2 == 1) y = add(y, flow.side);
      for (const auto& one : flow.several) y = add(y, one);
      return y;
    };
    layers(layer({first, side}, begin), inner(0), inner(1), inner(2), inner(3), layer({last}, end));
  }
  Loss<float> loss(const Variable<float>& y, const Batch& batch) const { return cross_entropy(y, batch.targets); }

  Layer first{*this, "first"};
  Layer side{*this, "side"};
  nn::ModuleList<Layer> middle{*this, "middle", 4};
  nn::Dropout<Float32> drop{*this, "drop", 0.3};  // of all four
  Layer last{*this, "last"};
};

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> values;
};

Outcome train(const Group& world, const std::string& schedule, int chunks) {
  const ProcessMesh mesh(world, {.pipeline = world.size()});
  Net net(parallel::model_context(mesh, {.num_chunks = chunks, .seed = 3}));
  net.initialize();
  parallel::DataParallel replicas(net, mesh, {.schedule = schedule, .check_replicas = 1});
  // Groups may name layers of any stage.
  optim::AdamW<Float32> optimizer(
      net, {.learning_rate = 0.02, .weight_decay = 0.1, .groups = {{.pattern = "last.*", .learning_rate_factor = 0.5}}});
  Outcome outcome;
  for (std::int64_t number = 0; number < steps; ++number) {
    parallel::Step step = replicas.begin(number, micro_batches);
    step.backward(net, batches_of(number));
    step.update(optimizer);
    outcome.losses.push_back(step.finish().loss());
  }
  FlatStore& store = net.store();
  for (int index = 0; index < store.num_parameters(); ++index) {
    const auto values = store.values<float>(index).span();
    outcome.values[store.parameter(index).name] = {values.begin(), values.end()};
  }
  return outcome;
}

}  // namespace

TEST_CASE("flows of any shape, drawn numbers and parts that nobody uses are those of one rank") {
  Outcome whole;
  testing::run_ranks(1, [&](const Group& world) { whole = train(world, "", 1); });
  struct Layout {
    int ranks;
    const char* schedule;
    int chunks;
  };
  for (const Layout& layout : {Layout{1, "", 2}, Layout{2, "gpipe", 1}, Layout{2, "1f1b", 1}, Layout{2, "zb", 1},
                               Layout{2, "", 2}, Layout{3, "", 1}, Layout{4, "zb", 1}, Layout{6, "1f1b", 1}}) {
    CAPTURE(layout.ranks, layout.schedule, layout.chunks);
    testing::run_ranks(layout.ranks, [&](const Group& world) {
      const Outcome got = train(world, layout.schedule, layout.chunks);
      for (std::size_t step = 0; step < steps; ++step) {
        expect(std::abs(got.losses[step] - whole.losses[step]) < 1e-5, "loss {} of one rank, got {}", whole.losses[step],
               got.losses[step]);
      }
      for (const auto& [name, values] : got.values) {
        for (std::size_t i = 0; i < values.size(); ++i) {
          expect(std::abs(values[i] - whole.values.at(name)[i]) < 2e-5F, "{}: {} on one rank, got {}", name,
                 whole.values.at(name)[i], values[i]);
        }
      }
    });
  }
}

TEST_CASE("a step of a model of stages is refused where it comes too late, twice or without layers") {
  testing::run_ranks(2, [](const Group& world) {
    const ProcessMesh mesh(world, {.pipeline = 2});
    Net net(parallel::model_context(mesh));
    net.initialize();
    parallel::DataParallel replicas(net, mesh);
    optim::AdamW<Float32> optimizer(net);
    parallel::Step step = replicas.begin(0, micro_batches);
    step.backward(net, batches_of(0));
    const auto refused = [&](std::string_view why) {
      expect_error(
          ErrorCode::invalid_argument, [&] { step.backward(net, batches_of(0)); }, why);
    };
    refused("takes all micro-batches of a model of stages at once");
    step.finish();
    refused("after its finish()");
    step.update(optimizer);
    refused("after its end");
  });
  struct Forgetful : nn::Staged<Float32, Cpu, Batch> {
    Loss<float> loss(const Value& y, const Batch& batch) const { return cross_entropy(y, batch.targets); }
    nn::Linear<Float32> fc{*this, "fc", {.in = 2, .out = 2}};
  };
  testing::run_ranks(1, [](const Group& world) {
    Forgetful net;
    net.initialize();
    parallel::DataParallel replicas(net, ProcessMesh(world));
    parallel::Step step = replicas.begin(0);
    expect_error(
        ErrorCode::invalid_argument, [&] { step.backward(net, batches_of(0, 1)); }, "its constructor calls layers()");
  });
}

namespace {

struct Targets {
  double target_weight;
  std::int64_t first_sample = 0;
};

// Adds (1 + index) * the sum of its weight, so that gradients are (1 + index) / 10.
struct Addend : nn::Module<Float32> {
  Addend(const nn::Module<Float32>& parent, std::string_view name, int layer)
      : Module(parent, name), index(layer), weight(add_parameter("weight", {20 + layer}, Initializer::constant(1))) {
    if (layer == 1) add_parameter("unused", {3}, Initializer::constant(1));
  }
  Variable<float> here() const { return sum(scale(weight.variable(), static_cast<float>(1 + index))); }
  Variable<float> forward(const Variable<float>& x) const { return add(x, here()); }

  int index;
  Parameter<float> weight;
};

struct ThreeStages : nn::Staged<Float32, Cpu, Targets> {
  explicit ThreeStages(const ModelContext& context) : Staged(context) {
    layers(layer({first}, [this](const Targets&) { return first.here(); }), second, third);
  }
  Loss<float> loss(const Variable<float>& y, const Targets& targets) const {
    return {.sum = y, .target_weight = targets.target_weight, .nominal_targets = 10};
  }

  Addend first{*this, "first", 0};
  Addend second{*this, "second", 1};
  Addend third{*this, "third", 2};
};

}  // namespace

TEST_CASE("the summary of a step adds up all stages of a pipeline") {
  for (const auto sharding : {parallel::Sharding::none, parallel::Sharding::optimizer}) {
    for (const int data : {1, 2}) {
      testing::run_ranks(3 * data, [&](const Group& world) {
        const ProcessMesh mesh(world, {.data = data, .pipeline = 3});
        const int rank = mesh.pipeline().rank();
        ThreeStages model(parallel::model_context(mesh));
        model.initialize();
        parallel::DataParallel replicas(model, mesh, {.sharding = sharding});
        parallel::Step step = replicas.begin(0);
        step.backward(model, std::vector{Targets{.target_weight = 4.0 + mesh.data().rank()}});
        const StepSummary& summary = step.finish();
        const double target_weight = data == 1 ? 4 : 9;
        const std::vector<bool> used = rank == 1 ? std::vector{true, false} : std::vector{true};
        require(summary.target_weight == target_weight && summary.loss_sum == (20 + 42 + 66) * data && summary.used == used,
                "loss {} of {} targets", summary.loss_sum, summary.target_weight);
        const double norm = std::sqrt(20 * 1.0 + 21 * 4.0 + 22 * 9.0) * data / target_weight;
        require(std::abs(summary.gradient_norm - norm) < 1e-6 * norm, "a norm of {}, not {}", summary.gradient_norm, norm);
      });
    }
  }
  CHECK_THROWS_WITH(
      testing::run_ranks(2,
                         [](const Group& world) {
                           const ProcessMesh mesh(world, {.pipeline = 2});
                           ThreeStages model(parallel::model_context(mesh));
                           model.initialize();
                           parallel::DataParallel replicas(model, mesh);
                           parallel::Step step = replicas.begin(0);
                           step.backward(0, [&] { return (mesh.pipeline().rank() == 0 ? model.first : model.third).here(); });
                           step.finish();
                         }),
      ContainsSubstring("give it the model and its batches"));
}

namespace {

struct Normed : nn::Staged<Float32, Cpu, Batch> {
  explicit Normed(const ModelContext& context = {}) : Staged(context) {
    const auto once = [this](const nn::Linear<Float32>& fc) {
      return [this, &fc](const Variable<float>& x) {
        return reshape(norm.forward(reshape(fc.forward(x), {rows, 1, 1, width})), {rows, width});
      };
    };
    layers(layer({first}, [this](const Batch& batch) { return first.forward(batch.x); }), layer({second, norm}, once(second)),
           layer({third, norm}, once(third)));
  }
  Loss<float> loss(const Value& y, const Batch& batch) const { return cross_entropy(y, batch.targets); }

  nn::Linear<Float32> first{*this, "first", {.in = width, .out = width}};
  nn::Linear<Float32> second{*this, "second", {.in = width, .out = width}};
  nn::Linear<Float32> third{*this, "third", {.in = width, .out = width}};
  nn::BatchNorm2d<Float32> norm{*this, "norm", {.channels = width}};
};

}  // namespace

TEST_CASE("a buffer of layers on several ranks is refused") {
  testing::run_ranks(3, [](const Group& world) {
    const ProcessMesh mesh(world, {.pipeline = 3});
    const ModelContext context = parallel::model_context(mesh);
    expect_error(
        ErrorCode::invalid_argument, [&] { Normed net(context); }, "norm.running_mean", "ranks 1, 2 of the pipeline");
  });
  Normed alone;
  alone.initialize();
  const auto before = alone.store().buffers().values<float>().clone();
  CHECK(nn::measured_layer_costs(alone, batches_of(0).front()).size() == 3);
  const auto after = alone.store().buffers().values<float>();
  CHECK(std::ranges::equal(before.span(), after.span()));  // measuring leaves them
}

TEST_CASE("optimizers are compared once each, wherever they lie in memory") {
  testing::run_ranks(2, [](const Group& world) {
    Net net;
    net.initialize();
    parallel::DataParallel replicas(net, ProcessMesh(world));
    std::optional<optim::AdamW<Float32>> optimizer;
    for (std::int64_t number = 0; number < 3; ++number) {
      optimizer.emplace(net, optim::AdamWOptions{.weight_decay = number == 2 ? 0.1 * world.rank() : 0.1});
      parallel::Step step = replicas.begin(number);
      step.backward(net, batches_of(2 * number + world.rank(), 1));
      if (number < 2) {
        step.update(*optimizer);
      } else {
        expect_error(
            ErrorCode::rank_mismatch, [&] { step.update(*optimizer); }, "weight_decay = 0");
      }
    }
  });
}
