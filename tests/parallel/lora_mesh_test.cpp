// LoRA on meshes of data, pipeline and tensor axes: the losses of PEFT, the same files, masks and resumed runs.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "catch.hpp"
#include "checkpoint/simulated_file_system.hpp"
#include "fixtures.hpp"
#include "models/adapted_models.hpp"
#include "parallel/mesh_layout.hpp"
#include "temporary_folder.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/step/step.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using tests::Layout;

namespace {

namespace fs = std::filesystem;

const std::vector<Layout> lora_layouts = [] {
  std::vector<Layout> all = tests::layouts;
  all.push_back({.data = 4});
  all.push_back({.data = 2, .micro_batches = 2, .sharding = parallel::Sharding::optimizer});
  all.push_back({.tensor = 2, .micro_batches = 2});
  return all;
}();

// Steps [first, first + count) on the same windows; their losses.
std::vector<double> train(auto& model, parallel::DataParallel& replicas, optim::AnyOptimizer& optimizer,
                          const ProcessMesh& mesh, const Layout& layout, const Tensor<std::int32_t>& windows,
                          std::int64_t first_step, int count) {
  const std::int64_t rows = windows.dim(0) / mesh.batch().size() / layout.micro_batches;
  std::vector<double> losses;
  for (int number = 0; number < count; ++number) {
    std::vector<data::TokenBatch> batches;
    for (std::int64_t micro = 0; micro < layout.micro_batches; ++micro) {
      const std::int64_t first = (mesh.batch().rank() * layout.micro_batches + micro) * rows;
      batches.push_back(tests::batch_of_windows(windows, first, rows));
    }
    parallel::Step step = replicas.begin(first_step + number, layout.micro_batches);
    step.backward(model, batches);
    step.update(optimizer);
    losses.push_back(step.finish().loss());
  }
  return losses;
}

void require_near(const std::vector<double>& had, const std::vector<double>& wanted, double tolerance) {
  require(had.size() == wanted.size(), "{} losses, not {}", had.size(), wanted.size());
  for (std::size_t step = 0; step < had.size(); ++step) {
    require(std::abs(had[step] - wanted[step]) < tolerance * wanted[step], "step {}: a loss of {}, not {}", step, had[step],
            wanted[step]);
  }
}

bool fits(const Layout& layout, const tests::ModelFolder& fixture) {
  const auto config = tests::read_json(fixture.path / "config.json");
  return config.value("num_key_value_heads", 4) % layout.tensor == 0;
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("adapters train on every mesh as by PEFT") {
  for (const tests::ModelFolder& fixture : tests::model_folders("folders_of_peft")) {
    const auto windows = tests::windows_of(fixture);
    for (const Layout& layout : lora_layouts) {
      if (!fits(layout, fixture)) continue;
      INFO(fixture.name() << ", " << layout.str());
      const auto run = [&](const char* name, double tolerance, const auto& make_optimizer) {
        testing::run_ranks(layout.ranks(), [&](const Group& world) {
          const ProcessMesh mesh = layout.mesh(world);
          tests::with_adapted<Float32>(fixture, layout.context(mesh), [&](auto& model) {
            parallel::DataParallel replicas(model, mesh, {.sharding = layout.sharding});
            auto optimizer = make_optimizer(model);
            const auto losses = train(model, replicas, optimizer, mesh, layout, windows, 0, 10);
            require_near(losses, fixture.expected().template read_values<double>(name), tolerance);
          });
        });
      };
      CHECK_NOTHROW(
          run("sgd_losses", 1e-5, [&](auto& model) { return optim::Sgd(model, {.learning_rate = fixture.learning_rate}); }));
      CHECK_NOTHROW(run("adamw_losses", 1e-4, [&](auto& model) {
        return optim::AdamW(model, {.learning_rate = fixture.learning_rate, .weight_decay = 0.01});
      }));
    }
  }
}

TEST_CASE("a divided model writes the adapter and the merged weights of a whole one") {
  for (const tests::ModelFolder& fixture : tests::model_folders("folders_of_peft")) {
    const tests::TemporaryFolder folder;
    const auto save = [&](auto& model, const fs::path& to) {
      models::save_adapter(model, to);
      models::save_pretrained(model, to);
    };
    tests::with_adapted<Float32>(fixture, {}, [&](auto& model) { save(model, folder.path() / "whole"); });
    for (const Layout& layout : lora_layouts) {
      if (layout.ranks() == 1 || layout.data > 1 || !fits(layout, fixture)) continue;
      INFO(fixture.name() << ", " << layout.str());
      CHECK_NOTHROW(testing::run_ranks(layout.ranks(), [&](const Group& world) {
        tests::with_adapted<Float32>(fixture, layout.context(layout.mesh(world)), [&](auto& model) {
          world.agree([&] { save(model, folder.path() / "joined"); });
          for (const char* file : {"adapter_model.safetensors", "adapter_config.json", "model.safetensors", "config.json"}) {
            require(content(folder.path() / "joined" / file) == content(folder.path() / "whole" / file), "other bytes in {}",
                    file);
          }
        });
      }));
    }
  }
}

namespace {

// With dropout, in double: nothing but the layout differs.
std::vector<double> with_dropout(const tests::ModelFolder& fixture, const Layout& layout) {
  std::vector<double> all;
  testing::run_ranks(layout.ranks(), [&](const Group& world) {
    const ProcessMesh mesh = layout.mesh(world);
    ModelContext context = layout.context(mesh);
    context.lora = models::lora_options(fixture.path);
    context.lora->dropout = 0.4;
    tests::with_adapted<Float64>(fixture, context, [&](auto& model) {
      parallel::DataParallel replicas(model, mesh, {.sharding = layout.sharding});
      optim::AdamW optimizer(model, {.learning_rate = 0.01});
      const auto losses = train(model, replicas, optimizer, mesh, layout, tests::windows_of(fixture), 0, 4);
      if (world.rank() == 0) all = losses;
    });
  });
  return all;
}

}  // namespace

TEST_CASE("what adapters drop does not depend on the mesh") {
  for (const tests::ModelFolder& fixture : tests::model_folders("folders_of_peft")) {
    const auto alone = with_dropout(fixture, {});
    const auto without = fixture.expected().read_values<double>("adamw_losses");
    CHECK(std::abs(alone[0] - without[0]) > 1e-4);
    for (const Layout& layout : lora_layouts) {
      if (!fits(layout, fixture)) continue;
      INFO(fixture.name() << ", " << layout.str());
      if (layout.sequence_parallel) {
        CHECK_THROWS_WITH(with_dropout(fixture, layout), ContainsSubstring("in a sequence-parallel model LoRA has no dropout"));
      } else {
        CHECK_NOTHROW(require_near(with_dropout(fixture, layout), alone, 1e-10));
      }
    }
  }
}

namespace {

template <typename P>
void resume(const tests::ModelFolder& fixture, const Layout& layout, double dropout) {
  const auto files = std::make_shared<test::SimulatedFileSystem>();
  testing::run_ranks(layout.ranks(), [&](const Group& world) {
    const ProcessMesh mesh = layout.mesh(world);
    ModelContext context = layout.context(mesh);
    context.lora = models::lora_options(fixture.path);
    context.lora->dropout = dropout;
    const auto windows = tests::windows_of(fixture);
    const auto run = [&](int first, int count, bool load, bool save) {
      std::vector<double> losses;
      tests::with_adapted<P>(fixture, context, [&](auto& model) {
        parallel::DataParallel replicas(model, mesh, {.sharding = layout.sharding});
        optim::AdamW optimizer(model, {.learning_rate = 0.01});
        checkpoint::Checkpoints checkpoints(world, {.directory = "/run", .asynchronous = false, .file_system = files});
        State state;
        replicas.add_to(state);
        optimizer.add_to(state);
        if (load) checkpoints.load(first, state);
        losses = train(model, replicas, optimizer, mesh, layout, windows, first, count);
        if (save) checkpoints.save(first + count, state);
      });
      return losses;
    };
    std::vector<double> whole = run(0, 5, false, false), parts = run(0, 3, false, true);
    for (const double loss : run(3, 2, true, false)) parts.push_back(loss);
    require(whole == parts, "other losses after the checkpoint");
  });
}

}  // namespace

TEST_CASE("a run with adapters goes on from a checkpoint by the same bits") {
  for (const char* name : {"llama_qv", "llama_all"}) {
    for (const tests::ModelFolder& fixture : tests::model_folders("folders_of_peft")) {
      if (fixture.name() != name) continue;
      for (const Layout& layout : lora_layouts) {
        INFO(name << ", " << layout.str());
        const double dropout = layout.sequence_parallel ? 0 : 0.2;
        CHECK_NOTHROW(resume<Float32>(fixture, layout, dropout));
        CHECK_NOTHROW(resume<MixedBfloat16>(fixture, layout, dropout));
        CHECK_NOTHROW(resume<MixedFloat16>(fixture, layout, dropout));
      }
    }
  }
}
