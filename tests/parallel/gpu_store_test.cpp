#include <functional>
#include <mutex>
#include <vector>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "comm/fake_nccl.hpp"
#include "device/fake_gpu.hpp"
#include "device/fake_gpu_planes.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/step_graph.hpp"
#include "trireme/testing/ranks.hpp"

// Steps of a model whose store lies on a fake GPU: code that reads or writes its planes on the host crashes. The values of
// all ranks are then compared with the same steps of a store on the host.
namespace {

using namespace trireme;
using namespace trireme::test;

constexpr int steps = 3;

struct Setup {
  const PlaneDevice* device = nullptr;
  std::function<Group(const Group& host)> make_group = {};
  parallel::ParallelOptions options = {};
  int fixed_micro_batches = 0;
  bool on_device = false;  // where the numbers of a step stay
};

std::unique_ptr<Model> make_model(const Setup& setup) {
  auto model = std::make_unique<Model>(ModelContext{}, DType::float32, DType::float32, *setup.device);
  FlatStore& store = model->store();
  for (const std::int64_t numel : {37, 1000, 16, 333, 64}) {
    store.add("weight" + std::to_string(numel), {numel}, Initializer::normal(0, 1));
  }
  if (setup.fixed_micro_batches == 0) store.add_buffer("mean", {5}, 0.5);
  store.initialize<float>(7);
  return model;
}

// Gradients as after a backward pass: the first micro-batch does not use the last parameter.
void write_gradients(FlatStore& store, std::int64_t step, int rank) {
  for (int index = 0; index < store.num_parameters(); ++index) {
    if (rank == 0 && index == 4) continue;
    const ParameterInfo& info = store.parameter(index);
    std::vector<float> gradient;
    for (std::int64_t i = 0; i < info.numel; ++i) {
      gradient.push_back(static_cast<float>(philox_normal(
          static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(10 * rank + index), static_cast<std::uint64_t>(i))));
    }
    auto* to = static_cast<float*>(store.gradient_plane()->data()) + info.offset;
    store.device().write(to, gradient.data(), gradient.size() * sizeof(float));
    store.set_has_gradient(index);
  }
}

// values -= 0.1 * gradients, for the part that this rank updates.
class Descent final : public optim::AnyOptimizer {
 public:
  explicit Descent(FlatStore& store) : store_(store) {}

  void check(const StepSummary&) const override {}
  bool step(const StepSummary&, const optim::UpdateOptions&) override {
    const auto shard = store_.shard();
    const std::vector<Range> ranges = shard ? shard->ranges() : std::vector<Range>{{0, store_.trainable_numel()}};
    const auto publication = shard ? shard->publish() : nullptr;
    for (std::size_t index = 0; index < ranges.size(); ++index) {
      const auto [begin, end] = ranges[index];
      const auto count = static_cast<std::size_t>(end - begin);
      std::vector<float> values(count);
      std::vector<float> gradients(count);
      auto* at = static_cast<float*>(store_.value_plane()->data()) + begin;
      store_.device().read(at, values.data(), count * sizeof(float));
      store_.device().read(static_cast<float*>(store_.gradient_plane()->data()) + begin, gradients.data(),
                           count * sizeof(float));
      for (std::size_t i = 0; i < count; ++i) values[i] -= 0.1F * gradients[i];
      store_.device().write(at, values.data(), count * sizeof(float));
      if (publication) publication->updated(index);
    }
    if (publication) publication->finish();
    store_.clear_gradients();
    return true;
  }

  double learning_rate() const override { return 0.1; }
  void set_learning_rate(double) override {}
  StepSummary decidable(StepSummary summary) const override { return summary; }
  void skip_step() override {}
  std::int64_t skipped_steps() override { return 0; }
  optim::Settings settings() const override { return {}; }
  void add_to(State&, const std::string&) override {}

 private:
  FlatStore& store_;
};

struct Outcome {
  std::vector<double> losses_and_norms;
  std::vector<float> values;
  bool operator==(const Outcome&) const = default;
};

// A step whose backward pass finds all gradients written: a tape without any operation of the store's.
StepNumbers take_step(parallel::Step& step, FlatStore& store, int rank, int micro_batches) {
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    const int number = micro_batches * rank + micro_batch;
    step.backward(number, [&] {
      write_gradients(store, step.number(), number);
      const auto value = static_cast<float>(number + step.number());
      add_loss(Variable<float>(Tensor<float>::full({1}, 0.25F)));
      return Loss<float>{.sum = watch(Tensor<float>::full({1}, value), [](const Tensor<float>&) {}),
                         .target_weight = number == 0 ? 1 : 2,
                         .nominal_targets = 2};
    });
  }
  Descent optimizer(store);
  step.update(optimizer);
  const StepSummary& summary = step.finish();
  if (!summary.on_device) return summary.numbers();
  CHECK(summary.used[3]);
  return *reinterpret_cast<const StepNumbers*>(reach_fake_gpu(summary.on_device.get()));
}

std::vector<Outcome> train(int ranks, const Setup& setup) {
  std::vector<Outcome> results(static_cast<std::size_t>(ranks));
  testing::run_ranks(ranks, [&](const Group& host) {
    const Group group = setup.make_group(host);
    const auto model = make_model(setup);
    FlatStore& store = model->store();
    parallel::DataParallel replicas(*model, ProcessMesh(group), setup.options);
    Outcome& result = results[static_cast<std::size_t>(host.rank())];
    const int micro_batches = setup.fixed_micro_batches > 0 ? setup.fixed_micro_batches / ranks : 1;
    const auto run = [&](parallel::Step& step, const auto&...) {
      const StepNumbers numbers = take_step(step, store, host.rank(), micro_batches);
      result.losses_and_norms.push_back(numbers.loss_sum / numbers.target_weight);
      result.losses_and_norms.push_back(numbers.gradient_norm);
    };
    parallel::StepGraph<Cpu> graph(replicas, run);
    for (std::int64_t number = 0; number < steps; ++number) {
      if (setup.on_device) {
        graph.run({.number = number});
      } else {
        parallel::Step step = replicas.begin(number, micro_batches);
        run(step);
      }
    }
    for (int index = 0; index < store.num_parameters(); ++index) {
      const Tensor<float> values = store.read_values<float>(index);
      result.values.insert(result.values.end(), values.span().begin(), values.span().end());
    }
  });
  return results;
}

}  // namespace

TEST_CASE("steps of a store on a GPU leave what those of one on the host leave") {
  using parallel::ParallelOptions;
  using parallel::Sharding;
  const std::vector<ParallelOptions> all{
      {.sharding = Sharding::none, .buckets = {.bytes = 1}, .check_replicas = 2},
      {.sharding = Sharding::automatic, .buckets = {.bytes = 1 << 20}, .synchronize_batch_norm = false},
      {.sharding = Sharding::optimizer, .buckets = {.bytes = 2048}},
  };
  for (const int ranks : {1, 2, 3}) {
    for (const ParallelOptions& options : all) {
      const Setup host{
          .device = &plane_device<Cpu>(), .make_group = [](const Group& group) { return group; }, .options = options};
      const auto wanted = train(ranks, host);
      for (const bool nccl : {true, false}) {
        for (const bool on_device : {false, true}) {
          const auto make = nccl ? fake_nccl_group : fake_staged_group;
          const auto got =
              train(ranks, {.device = &fake_gpu_planes(), .make_group = make, .options = options, .on_device = on_device});
          for (int rank = 0; rank < ranks; ++rank) {
            const auto& [numbers, values] = got[static_cast<std::size_t>(rank)];
            CHECK(values == got.front().values);
            REQUIRE(values.size() == wanted.front().values.size());
            for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(values[i] == Approx(wanted.front().values[i]).margin(1e-5));
            for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(numbers[i] == Approx(wanted.front().losses_and_norms[i]));
          }
        }
      }
    }
  }
}

TEST_CASE("fixed bits are the same bits on a GPU as on the host, for any number of ranks") {
  const parallel::ParallelOptions options{.sum = parallel::FixedBits{.micro_batches = 4}, .buckets = {.bytes = 2048}};
  const Setup host{.device = &plane_device<Cpu>(),
                   .make_group = [](const Group& group) { return group; },
                   .options = options,
                   .fixed_micro_batches = 4};
  const Outcome wanted = train(1, host).front();
  for (const int ranks : {1, 2, 4}) {
    for (const Outcome& result :
         train(ranks,
               {.device = &fake_gpu_planes(), .make_group = fake_nccl_group, .options = options, .fixed_micro_batches = 4})) {
      CHECK(result == wanted);
    }
  }
}

TEST_CASE("a model on a GPU needs a group that reaches it") {
  testing::run_ranks(2, [](const Group& host) {
    const auto model = make_model({.device = &fake_gpu_planes()});
    expect_error(
        ErrorCode::invalid_argument, [&] { parallel::DataParallel(*model, ProcessMesh(host), {}); }, "gpu_group(group)");
  });
  CHECK(failed_checks.exchange(0) == 0);
}

TEST_CASE("a model on the host may use a group of GPUs") {
  const Setup host{.device = &plane_device<Cpu>(), .make_group = [](const Group& group) { return group; }};
  CHECK(train(2, host) == train(2, {.device = &plane_device<Cpu>(), .make_group = fake_nccl_group}));
}
