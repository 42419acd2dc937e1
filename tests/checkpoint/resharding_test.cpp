// Every layout of a GPT and its optimizer loads the checkpoints of every other layout.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>

#include "catch.hpp"
#include "checkpoint/simulated_file_system.hpp"
#include "trireme/amp/grad_scaler.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/optim/adamw_8bit.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using checkpoint::Checkpoints;
using test::SimulatedFileSystem;

namespace {

struct Layout {
  int data = 1;
  int tensor = 1;
  int pipeline = 1;
  parallel::Sharding sharding = parallel::Sharding::none;

  int ranks() const { return data * tensor * pipeline; }
  std::string str() const {
    return fmt::format("data {} x tensor {} x pipeline {}{}", data, tensor, pipeline,
                       sharding == parallel::Sharding::optimizer ? ", sharded" : "");
  }
};

std::vector<Layout> layouts() {
  constexpr std::array<std::array<int, 3>, 10> sizes{
      {{1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {1, 2, 1}, {1, 4, 1}, {1, 1, 2}, {2, 2, 1}, {2, 1, 2}, {1, 2, 2}, {2, 2, 2}}};
  std::vector<Layout> all;
  for (const auto& [data, tensor, pipeline] : sizes) {
    for (const auto sharding : {parallel::Sharding::none, parallel::Sharding::optimizer})
      all.push_back({data, tensor, pipeline, sharding});
  }
  return all;
}

// A model, its optimizer and its scaler on one layout.
class Run {
 public:
  Run(const Group& world, const Layout& layout)
      : mesh_(world, {.data = layout.data, .pipeline = layout.pipeline, .tensor = layout.tensor}),
        model_({.layers = 2, .heads = 4, .width = 16, .block = 8, .vocabulary = 37}, parallel::model_context(mesh_)) {
    model_.initialize({.seed = 1});
    data_parallel_.emplace(
        model_, mesh_, parallel::ParallelOptions{.sharding = layout.sharding, .buckets = {.bytes = 2000, .slice_bytes = 2000}});
    optimizer_.emplace(model_, optim::AdamWOptions{.amsgrad = true});
    model_.store().add_to(state_, "model.");
    optimizer_->add_to(state_);
    scaler_.add_to(state_);
  }

  const State& state() const { return state_; }

  // Every element a function of its name and index.
  void fill() {
    for_each([](std::byte* at, std::uint32_t bits) { std::memcpy(at, &bits, sizeof bits); });
    std::int64_t value = 3;
    for (const auto& [name, place] : state_.values())
      *std::get<std::int64_t*>(place) = value + static_cast<std::int64_t>(name.size());
  }
  std::string difference() const {
    std::string found;
    for_each([&](const std::byte* at, std::uint32_t bits, const std::string& name) {
      if (std::memcmp(at, &bits, sizeof bits) != 0) found = name;
    });
    for (const auto& [name, place] : state_.values()) {
      if (*std::get<std::int64_t*>(place) != 3 + static_cast<std::int64_t>(name.size())) found = name;
    }
    return found;
  }

 private:
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const StateTensor& tensor : state_.tensors()) {
      for (const StatePiece& piece : tensor.pieces) {
        for (std::int64_t index = piece.elements.begin; index < piece.elements.end; ++index) {
          auto* at = static_cast<std::byte*>(piece.data) + (index - piece.elements.begin) * 4;
          const std::uint32_t bits =
              (philox(5, hash_name(tensor.name), static_cast<std::uint64_t>(index))[0] >> 9) | 0x3f800000;
          if constexpr (std::is_invocable_v<Visit, std::byte*, std::uint32_t>) {
            visit(at, bits);
          } else {
            visit(at, bits, tensor.name);
          }
        }
      }
    }
  }

  ProcessMesh mesh_;
  models::Gpt<Float32> model_;
  std::optional<parallel::DataParallel> data_parallel_;
  std::optional<optim::AdamW<Float32>> optimizer_;
  amp::GradScaler scaler_;
  State state_;
};

std::uint64_t digest_on(const SimulatedFileSystem& system, std::int64_t step) {
  const auto path = checkpoint::checkpoint_folder("/run", step, system) / "manifest.json";
  const auto file = system.open(path);
  std::string text(file->size(), ' ');
  file->read_at(std::as_writable_bytes(std::span(text)), 0);
  return checkpoint::parse_manifest(text, path).digest();
}

}  // namespace

TEST_CASE("a GPT in any of 20 layouts loads what any has saved", "[many]") {
  const auto all = layouts();
  std::vector<std::shared_ptr<SimulatedFileSystem>> systems;
  for (const Layout& layout : all) {
    systems.push_back(std::make_shared<SimulatedFileSystem>());
    testing::run_ranks(layout.ranks(), [&](const Group& world) {
      Run run(world, layout);
      run.fill();
      Checkpoints checkpoints(world, {.directory = "/run", .asynchronous = false, .file_system = systems.back()});
      checkpoints.save(1, run.state());
    });
  }
  const std::uint64_t digest = digest_on(*systems[0], 1);
  int pairs = 0;
  for (const Layout& layout : all) {
    testing::run_ranks(layout.ranks(), [&](const Group& world) {
      Run run(world, layout);
      for (std::size_t saved = 0; saved < all.size(); ++saved) {
        Checkpoints checkpoints(world, {.directory = "/run", .asynchronous = false, .file_system = systems[saved]});
        checkpoints.load(1, run.state());
        const std::string difference = run.difference();
        require(difference.empty(), "{} saved, {} loaded: {} differs", all[saved].str(), layout.str(), difference);
        checkpoints.save(2, run.state());
        require(digest_on(*systems[saved], 1) == digest && digest_on(*systems[saved], 2) == digest,
                "{} saved, {} loaded: digests", all[saved].str(), layout.str());
        world.barrier();
        if (world.rank() == 0) ++pairs;
      }
    });
  }
  CHECK(pairs == 400);
}

namespace {

// Parameters with blocks of 256 elements that lie on several ranks, and their 8-bit optimizer.
class Coded {
 public:
  Coded(const Group& world, parallel::Sharding sharding, bool fixed_bits) {
    root_.initialize({.seed = 1});
    replicas_.emplace(
        root_, ProcessMesh(world),
        parallel::ParallelOptions{.sum = fixed_bits ? parallel::GradientSum(parallel::FixedBits{.micro_batches = 4})
                                                    : parallel::GradientSum(parallel::Plain{}),
                                  .sharding = sharding,
                                  .buckets = {.bytes = 3000, .slice_bytes = 3000}});
    optimizer_.emplace(root_, optim::AdamW8bitOptions{.min_8bit_size = 500});
    root_.store().add_to(state_, "model.");
    optimizer_->add_to(state_);
  }
  const State& state() const { return state_; }

  // As many micro-batches of a row as there are ranks in the largest layout.
  void train(const Group& world, int steps) {
    const int each = 4 / world.size();
    for (int number = 0; number < steps; ++number) {
      parallel::Step step = replicas_->begin(number, each);
      for (int micro = 0; micro < each; ++micro) {
        const int row = number * 4 + world.rank() * each + micro;
        Tensor<float> x({1, 31});
        for (std::int64_t i = 0; i < 31; ++i) x.data()[i] = std::sin(static_cast<float>(row * 31 + i));
        step.backward(row, [&] {
          const auto y = root_.down.forward(root_.up.forward(x));
          return Loss<float>{.sum = sum(multiply(y, y)), .target_weight = 1, .nominal_targets = 1};
        });
      }
      step.update(*optimizer_, {.clip_norm = 0.5});
    }
  }

 private:
  struct Root : nn::Module<Float32> {
    nn::Linear<Float32> up{*this, "up", {.in = 31, .out = 67}};
    nn::Linear<Float32> down{*this, "down", {.in = 67, .out = 29}};
  };
  Root root_;
  std::optional<parallel::DataParallel> replicas_;
  std::optional<optim::AdamW8bit<Float32>> optimizer_;
  State state_;
};

}  // namespace

TEST_CASE("8-bit AdamW has the same bits with any number of ranks, whose checkpoints each other load") {
  struct Ranks {
    int ranks;
    parallel::Sharding sharding;
  };
  const std::array<Ranks, 5> all{{{1, parallel::Sharding::none},
                                  {2, parallel::Sharding::none},
                                  {2, parallel::Sharding::optimizer},
                                  {4, parallel::Sharding::optimizer},
                                  {1, parallel::Sharding::optimizer}}};
  std::vector<std::shared_ptr<SimulatedFileSystem>> systems;
  for (const auto& [ranks, sharding] : all) {
    systems.push_back(std::make_shared<SimulatedFileSystem>());
    testing::run_ranks(ranks, [&](const Group& world) {
      Coded run(world, sharding, true);
      run.train(world, 3);
      Checkpoints checkpoints(world, {.directory = "/run", .asynchronous = false, .file_system = systems.back()});
      checkpoints.save(1, run.state());
    });
    CHECK(digest_on(*systems.back(), 1) == digest_on(*systems.front(), 1));
  }
  // Also two steps later.
  for (std::size_t layout = 0; layout < all.size(); ++layout) {
    testing::run_ranks(all[layout].ranks, [&](const Group& world) {
      Coded run(world, all[layout].sharding, true);
      Checkpoints checkpoints(world,
                              {.directory = "/run", .asynchronous = false, .file_system = systems[(layout + 3) % all.size()]});
      checkpoints.load(1, run.state());
      checkpoints.save(2, run.state());
      run.train(world, 2);
      checkpoints.save(3, run.state());
    });
  }
  for (const auto& system : systems) {
    CHECK(digest_on(*system, 2) == digest_on(*system, 1));
    CHECK(digest_on(*system, 3) == digest_on(*systems.front(), 3));
    CHECK(digest_on(*system, 3) != digest_on(*system, 2));
  }
}
