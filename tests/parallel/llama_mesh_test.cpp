// Models of transformers on meshes of data, expert, pipeline and tensor axes: the losses of PyTorch, the same files and texts.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "parallel/mesh_layout.hpp"
#include "temporary_folder.hpp"
#include "trireme/models/architectures/generate.hpp"
#include "trireme/models/folders/hugging_face.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/step/step.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using tests::Layout;

namespace {

namespace fs = std::filesystem;

const std::vector<Layout> layouts = [] {
  std::vector<Layout> all = tests::layouts;
  all.push_back({.expert = 2});
  all.push_back({.pipeline = 2, .expert = 2});
  return all;
}();

// make_optimizer(model, learning rate); the losses of the references by their name, and how far they may be off.
void train(const Group& world, const Layout& layout, const tests::ModelFolder& fixture, const char* losses, double tolerance,
           const auto& make_optimizer) {
  const ProcessMesh mesh = layout.mesh(world);
  models::Llama<Float32> model(models::llama_options(fixture.path), layout.context(mesh));
  models::load_pretrained(model, fixture.path);
  parallel::DataParallel replicas(model, mesh, {.sharding = layout.sharding});
  auto optimizer = make_optimizer(model, fixture.learning_rate);
  const SafetensorsFile expected = fixture.expected();
  const auto windows = Tensor<std::int32_t>::from(expected.at("tokens").shape, expected.read_values<std::int32_t>("tokens"));
  const std::int64_t rows = windows.dim(0) / mesh.batch().size() / layout.micro_batches;
  std::int64_t number = 0;
  for (const double wanted : expected.read_values<double>(losses)) {
    std::vector<data::TokenBatch> batches;
    for (std::int64_t micro = 0; micro < layout.micro_batches; ++micro) {
      const std::int64_t first = (mesh.batch().rank() * layout.micro_batches + micro) * rows;
      batches.push_back(tests::batch_of_windows(windows, first, rows));
    }
    parallel::Step step = replicas.begin(number++, layout.micro_batches);
    step.backward(model, batches);
    step.update(optimizer);
    const double loss = step.finish().loss();
    require(std::abs(loss - wanted) < tolerance * wanted, "step {}: a loss of {}, not {}", number, loss, wanted);
  }
}

void train_by_sgd(const Group& world, const Layout& layout, const tests::ModelFolder& fixture) {
  train(world, layout, fixture, "sgd_losses", 1e-5,
        [](auto& model, double learning_rate) { return optim::Sgd(model, {.learning_rate = learning_rate}); });
}

void train_by_adamw(const Group& world, const Layout& layout, const tests::ModelFolder& fixture) {
  train(world, layout, fixture, "adamw_losses", 1e-4, [](auto& model, double learning_rate) {
    return optim::AdamW(model, {.learning_rate = learning_rate, .weight_decay = 0.01});
  });
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Whether the mesh fits: no more ranks than key and value heads, and than rows of the batch.
bool fits(const Layout& layout, const models::LlamaOptions& options) {
  return options.kv_heads % layout.tensor == 0 && options.layers >= layout.pipeline &&
         2 % (layout.data * layout.expert * layout.micro_batches) == 0 && options.experts.count % layout.expert == 0;
}

}  // namespace

TEST_CASE("models of transformers train on every mesh as by PyTorch") {
  for (const tests::ModelFolder& fixture : tests::model_folders("folders_of_transformers")) {
    const models::LlamaOptions options = models::llama_options(fixture.path);
    for (const Layout& layout : layouts) {
      INFO(fixture.name() << ", " << layout.str());
      if (!fits(layout, options)) continue;
      CHECK_NOTHROW(testing::run_ranks(layout.ranks(), [&](const Group& world) { train_by_sgd(world, layout, fixture); }));
      if (options.experts.count == 0) continue;
      CHECK_NOTHROW(testing::run_ranks(layout.ranks(), [&](const Group& world) { train_by_adamw(world, layout, fixture); }));
    }
  }
}

TEST_CASE("a divided model of transformers writes the folder and the text of a whole one") {
  for (const tests::ModelFolder& fixture : tests::model_folders("folders_of_transformers")) {
    const models::LlamaOptions options = models::llama_options(fixture.path);
    const std::vector<models::TokenText> prompts{{3, 1, 4}, {7}, {9, 2, 6, 5, 3, 5, 8, 9, 7}};
    models::Llama<Float32> whole(options);
    models::load_pretrained(whole, fixture.path);
    const tests::TemporaryFolder folder;
    models::save_pretrained(whole, folder.path() / "whole");
    const auto wanted = models::generate(whole, prompts, {.count = 12, .seed = 5, .context = 16});
    for (const Layout& layout : layouts) {
      INFO(fixture.name() << ", " << layout.str());
      if (layout.ranks() == 1 || !fits(layout, options)) continue;
      CHECK_NOTHROW(testing::run_ranks(layout.ranks(), [&](const Group& world) {
        const ProcessMesh mesh = layout.mesh(world);
        models::Llama<Float32> model(options, layout.context(mesh));
        models::load_pretrained(model, fixture.path);
        require(models::generate(model, prompts, {.count = 12, .seed = 5, .context = 16}) == wanted, "another text");
        if (layout.data > 1) return;  // replicas would write the same folder
        world.agree([&] { models::save_pretrained(model, folder.path() / "joined"); });
        for (const char* file : {"model.safetensors", "config.json"}) {
          require(content(folder.path() / "joined" / file) == content(folder.path() / "whole" / file), "other bytes in {}",
                  file);
        }
      }));
    }
  }
}

TEST_CASE("a folder that can't be made is one error on all ranks") {
  const tests::TemporaryFolder folder;
  const fs::path file = folder.path() / "file";
  std::ofstream(file) << "no folder";
  testing::run_ranks(4, [&](const Group& world) {
    const Layout layout{.pipeline = 2, .tensor = 2};
    const models::Llama<Float32> model({.layers = 2, .heads = 2, .width = 16, .hidden = 16},
                                       layout.context(layout.mesh(world)));
    model.store().initialize<float>(7);
    try {
      world.agree([&] { models::save_pretrained(model, file / "model"); });
    } catch (const Error& error) {
      require(error.fields().path == (file / "model").string() && error.fields().rank == 0, "another error: {}", error.what());
      return;
    }
    require(false, "no error");
  });
}

TEST_CASE("a tensor axis that does not divide the heads of keys and values is refused") {
  CHECK_THROWS_WITH(testing::run_ranks(2,
                                       [](const Group& world) {
                                         const Layout layout{.tensor = 2};
                                         const models::Llama<Float32> model({.layers = 1, .heads = 6, .kv_heads = 3},
                                                                            layout.context(layout.mesh(world)));
                                       }),
                    ContainsSubstring("2 ranks of a tensor axis can't divide 3 heads of keys and values"));
}
