#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"
#include "checkpoint/simulated_file_system.hpp"
#include "device/fake_gpu_planes.hpp"
#include "trireme/autograd/flat_store.hpp"
#include "trireme/checkpoint/checkpoint_reader.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/testing/ranks.hpp"

// Checkpoints of runs whose planes lie on a fake GPU, where the host sees them only through copies.
namespace {

using namespace trireme;
using checkpoint::CheckpointOptions;
using checkpoint::Checkpoints;
using test::SimulatedFileSystem;

CheckpointOptions saving_on(std::shared_ptr<SimulatedFileSystem> system, bool asynchronous) {
  return {.directory = "/run", .asynchronous = asynchronous, .file_system = std::move(system)};
}

// A model whose optimizer has a plane of momentum, each rank its part of it, and counts the updates of each parameter, as Adam
// does on a GPU. Everything lies on the device.
class Run {
 public:
  Run(const PlaneDevice& device, const Group& world)
      : device_(device), world_(world), store_(DType::float32, DType::bfloat16, device) {
    for (const std::int64_t numel : {37, 1000, 16, 333, 64}) {
      store_.add("weight" + std::to_string(numel), {numel}, Initializer::normal(0, 1));
    }
    store_.add_buffer("mean", {5}, 0.5);
    store_.add_buffer("amax", {3}, 2, {.reduction = BufferReduction::max, .in_weights = false});
    store_.initialize<float>(7);
    own_ = {store_.trainable_numel() * world.rank() / world.size(),
            store_.trainable_numel() * (world.rank() + 1) / world.size()};
    momentum_ = zeroed(static_cast<std::size_t>(own_.count()) * sizeof(float));
    updates_ = zeroed(static_cast<std::size_t>(store_.num_parameters()) * sizeof(std::int64_t));

    store_.add_to(state_, "model.");
    auto* updates = static_cast<std::int64_t*>(device.listed(state_, updates_->data(), updates_->bytes()));
    auto* momentum = static_cast<float*>(device.listed(state_, momentum_->data(), momentum_->bytes()));
    for (int index = 0; index < store_.num_parameters(); ++index) {
      const ParameterInfo& info = store_.parameter(index);
      state_.add("optimizer.step." + info.name, updates + index);
      state_.add({.name = "optimizer.momentum." + info.name,
                  .shape = info.placement.shape,
                  .pieces = store_.pieces(index, own_, momentum)});
    }
  }

  const State& state() const { return state_; }
  FlatStore& store() { return store_; }

  // The first parameter has no gradient in every third step.
  void step(std::uint64_t number) {
    auto updates = read<std::int64_t>(updates_, {0, store_.num_parameters()});
    auto momentum = read<float>(momentum_, {0, own_.count()});
    auto values = read<float>(store_.value_plane(), {0, store_.numel()});
    for (int index = number % 3 == 0 ? 1 : 0; index < store_.num_parameters(); ++index) {
      const ParameterInfo& info = store_.parameter(index);
      const auto rate = 0.1F / static_cast<float>(++updates[static_cast<std::size_t>(index)]);
      for (std::int64_t at = std::max(info.offset, own_.begin); at < std::min(info.offset + info.numel, own_.end); ++at) {
        const auto gradient =
            static_cast<float>(philox_normal(number, static_cast<std::uint64_t>(index), static_cast<std::uint64_t>(at)));
        float& average = momentum[static_cast<std::size_t>(at - own_.begin)];
        average = 0.9F * average + gradient;
        values[static_cast<std::size_t>(at)] -= rate * average;
      }
    }
    std::fill(values.begin(), values.begin() + own_.begin, 0.0F);
    std::fill(values.begin() + own_.end, values.end(), 0.0F);
    world_.all_reduce(std::span(values), ReduceOp::sum, "values").wait_on_host();
    write(updates_, updates);
    write(momentum_, momentum);
    write(store_.value_plane(), values);
    store_.refresh_compute_copy();
    auto buffers = read<float>(store_.buffers().plane(), {0, store_.buffers().numel()});
    for (float& buffer : buffers) buffer = 0.9F * buffer + values[number];
    write(store_.buffers().plane(), buffers);
  }

  // Everything that a checkpoint keeps of this rank.
  std::vector<float> all() const {
    std::vector<float> all = read<float>(store_.value_plane(), {0, store_.numel()});
    for (const float value : read<float>(store_.buffers().plane(), {0, store_.buffers().numel()})) all.push_back(value);
    for (const float value : read<float>(momentum_, {0, own_.count()})) all.push_back(value);
    for (const std::int64_t count : read<std::int64_t>(updates_, {0, store_.num_parameters()})) {
      all.push_back(static_cast<float>(count));
    }
    return all;
  }

 private:
  using Plane = std::shared_ptr<device::Storage>;

  Plane zeroed(std::size_t bytes) const {
    auto plane = std::make_shared<device::Storage>(device_.memory(), bytes);
    device_.zero(plane->data(), bytes);
    return plane;
  }
  template <typename T>
  std::vector<T> read(const Plane& plane, const Range& range) const {
    std::vector<T> values(static_cast<std::size_t>(range.count()));
    device_.read(static_cast<const T*>(plane->data()) + range.begin, values.data(), values.size() * sizeof(T));
    return values;
  }
  template <typename T>
  void write(const Plane& plane, const std::vector<T>& values) const {
    device_.write(plane->data(), values.data(), values.size() * sizeof(T));
  }

  const PlaneDevice& device_;
  Group world_;
  mutable FlatStore store_;
  Range own_;
  Plane momentum_;
  Plane updates_;
  State state_;
};

}  // namespace

TEST_CASE("a run on a GPU goes on from its checkpoint with the same bits, and saves what one on the host saves") {
  for (const int ranks : {1, 2}) {
    for (const bool asynchronous : {false, true}) {
      CAPTURE(ranks, asynchronous);
      std::vector<std::string> manifests;
      for (const PlaneDevice* device : {&plane_device<Cpu>(), &test::fake_gpu_planes()}) {
        const auto system = std::make_shared<SimulatedFileSystem>();
        testing::run_ranks(ranks, [&](const Group& world) {
          Run whole(*device, world);
          Checkpoints checkpoints(world, saving_on(system, asynchronous));
          for (std::uint64_t step = 0; step < 6; ++step) {
            whole.step(step);
            if (step == 1 || step == 3) checkpoints.save(static_cast<std::int64_t>(step) + 1, whole.state());
          }
          checkpoints.finish();
          for (const std::int64_t from : {2, 4}) {
            Run resumed(*device, world);
            resumed.step(17);  // of another run
            Checkpoints(world, saving_on(system, asynchronous)).load(from, resumed.state());
            for (auto step = static_cast<std::uint64_t>(from); step < 6; ++step) resumed.step(step);
            require(resumed.all() == whole.all(), "from step {} on the bits are those of the whole run", from);
          }
        });
        manifests.emplace_back();
        for (const std::int64_t step : {2, 4}) {
          const checkpoint::CheckpointReader reader(checkpoint::checkpoint_folder("/run", step, *system), system);
          manifests.back() += checkpoint::to_text(reader.manifest());
        }
      }
      CHECK(manifests[0] == manifests[1]);
    }
  }
}

TEST_CASE("weights alone leave the rest of a run on a GPU as it is") {
  const auto bits = [](const PlaneDevice& device, bool fresh) {
    const auto system = std::make_shared<SimulatedFileSystem>();
    std::vector<float> all;
    testing::run_ranks(1, [&](const Group& world) {
      FlatStore weights(DType::float32);
      for (const std::int64_t numel : {37, 1000, 16, 333, 64}) {
        weights.add("weight" + std::to_string(numel), {numel}, Initializer::uniform(-1, 1));
      }
      weights.add_buffer("mean", {5}, 3);
      weights.initialize<float>(9);
      State state;
      weights.add_to(state, "model.");
      Checkpoints checkpoints(world, saving_on(system, false));
      checkpoints.save(0, state, {}, checkpoint::ImportedWeights{.source = "weights.safetensors", .prefix = "model."});

      Run run(device, world);
      for (std::uint64_t step = 0; !fresh && step < 3; ++step) run.step(step);
      const auto before = run.all();
      const auto loaded = checkpoints.load_newest(run.state());
      require(loaded && loaded->imported, "the weights are loaded");
      const auto after = run.all();
      const std::int64_t weights_here = run.store().numel() + 5;  // with the buffer that is saved with them
      require(std::equal(before.begin() + weights_here, before.end(), after.begin() + weights_here, after.end()),
              "the optimizer's state and the buffer of training are left alone");
      for (std::uint64_t step = 3; step < 5; ++step) run.step(step);
      all = run.all();
    });
    return all;
  };
  for (const bool fresh : {true, false}) CHECK(bits(plane_device<Cpu>(), fresh) == bits(test::fake_gpu_planes(), fresh));
}
