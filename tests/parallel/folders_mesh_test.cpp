// Vision transformers, BERTs and GPTs of transformers on meshes of data, pipeline and tensor axes: the losses of PyTorch, the
// same files.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "parallel/mesh_layout.hpp"
#include "temporary_folder.hpp"
#include "trireme/models/folders/hugging_face.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/step/step.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using tests::Layout;
using tests::layouts;

namespace {

namespace fs = std::filesystem;

// Rows [first, first + count) of a tensor of a file.
template <typename T>
Tensor<T> rows_of(const SafetensorsFile& file, const char* name, std::int64_t first, std::int64_t count) {
  const Shape& shape = file.at(name).shape;
  return Tensor<T>::from(shape, file.read_values<T>(name)).narrow(first, count).clone();
}

data::ImageBatch images_of(const SafetensorsFile& file, std::int64_t first, std::int64_t rows) {
  return {.images = rows_of<float>(file, "images", first, rows),
          .labels = rows_of<std::int32_t>(file, "labels", first, rows),
          .first_sample = first,
          .valid = rows};
}

data::TextBatch texts_of(const SafetensorsFile& file, std::int64_t first, std::int64_t rows) {
  return {.tokens = rows_of<std::int32_t>(file, "tokens", first, rows),
          .targets = rows_of<std::int32_t>(file, "targets", first, rows),
          .key_padding_mask = rows_of<std::int32_t>(file, "padding", first, rows),
          .token_types = rows_of<std::int32_t>(file, "types", first, rows),
          .first_sample = first};
}

data::TokenBatch windows_of(const SafetensorsFile& file, std::int64_t first, std::int64_t rows) {
  data::TokenBatch batch = tests::batch_of_windows(rows_of<std::int32_t>(file, "tokens", first, rows), 0, rows);
  batch.first_sample = first;
  return batch;
}

// The losses of SGD on the folder's batch; the micro-batches divide its rows.
template <typename Net, typename BatchOf>
void train(const Layout& layout, const tests::ModelFolder& folder, Net& model, const ProcessMesh& mesh, std::int64_t samples,
           const BatchOf& batch_of) {
  parallel::DataParallel replicas(model, mesh, {.sharding = layout.sharding});
  optim::Sgd optimizer(model, {.learning_rate = folder.learning_rate});
  const SafetensorsFile expected = folder.expected();
  const std::int64_t rows = samples / layout.data / layout.micro_batches;
  std::int64_t number = 0;
  for (const double wanted : expected.read_values<double>("sgd_losses")) {
    std::vector<typename Net::BatchType> batches;
    for (std::int64_t micro = 0; micro < layout.micro_batches; ++micro) {
      batches.push_back(batch_of(expected, (mesh.data().rank() * layout.micro_batches + micro) * rows, rows));
    }
    parallel::Step step = replicas.begin(number++, layout.micro_batches);
    step.backward(model, batches);
    step.update(optimizer);
    const double loss = step.finish().loss();
    require(std::abs(loss - wanted) < 1e-5 * wanted, "step {}: a loss of {}, not {}", number, loss, wanted);
  }
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void require_equal_files(const fs::path& a, const fs::path& b) {
  for (const char* file : {"model.safetensors", "config.json"}) {
    require(content(a / file) == content(b / file), "other bytes in {}", file);
  }
}

}  // namespace

TEST_CASE("vision transformers train on every mesh as by PyTorch") {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_vit")) {
    const auto options = models::vit_options(folder.path);
    for (const Layout& layout : layouts) {
      INFO(folder.name() << ", " << layout.str());
      CHECK_NOTHROW(testing::run_ranks(layout.ranks(), [&](const Group& world) {
        const ProcessMesh mesh = layout.mesh(world);
        models::VisionTransformer<Float32> model(options, layout.context(mesh));
        models::load_pretrained(model, folder.path);
        train(layout, folder, model, mesh, 4, images_of);
      }));
    }
  }
}

TEST_CASE("a divided vision transformer gives the logits and writes the folder of a whole one") {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_vit")) {
    const auto options = models::vit_options(folder.path);
    models::VisionTransformer<Float32> whole(options);
    models::load_pretrained(whole, folder.path);
    const tests::TemporaryFolder written;
    models::save_pretrained(whole, written.path() / "whole");
    for (const Layout& layout : layouts) {
      INFO(folder.name() << ", " << layout.str());
      if (layout.ranks() == 1 || layout.data > 1) continue;
      CHECK_NOTHROW(testing::run_ranks(layout.ranks(), [&](const Group& world) {
        const ProcessMesh mesh = layout.mesh(world);
        models::VisionTransformer<Float32> model(options, layout.context(mesh));
        models::load_pretrained(model, folder.path);
        const SafetensorsFile expected = folder.expected();
        const auto logits = model.forward(images_of(expected, 0, 4)).value();
        const auto wrong = tests::mismatch(logits.span(), tests::read_floats(expected, "logits"), {.atol = 1e-4, .rtol = 0});
        require(wrong.empty(), "{}", wrong);
        world.agree([&] { models::save_pretrained(model, written.path() / "joined"); });
        require_equal_files(written.path() / "joined", written.path() / "whole");
      }));
    }
  }
}

TEST_CASE("images that a sequence-parallel axis can't divide are refused") {
  CHECK_THROWS_WITH(
      testing::run_ranks(
          2,
          [](const Group& world) {
            const Layout layout{.tensor = 2, .sequence_parallel = true};
            const models::VisionTransformer<Float32> model(
                {.layers = 1, .heads = 2, .width = 16, .hidden = 16, .image_size = 8, .patch_size = 4, .classes = 3},
                layout.context(layout.mesh(world)));
            model.store().initialize<float>(7);
            static_cast<void>(model.logits(Tensor<float>::zeros({1, 8, 8, 3})));
          }),
      ContainsSubstring("can't divide 1 images of 5 tokens"));
}

TEST_CASE("BERTs train on every mesh as by PyTorch") {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_bert")) {
    const auto options = models::bert_options(folder.path);
    for (const Layout& layout : layouts) {
      INFO(folder.name() << ", " << layout.str());
      CHECK_NOTHROW(testing::run_ranks(layout.ranks(), [&](const Group& world) {
        const ProcessMesh mesh = layout.mesh(world);
        models::Bert<Float32> model(options, layout.context(mesh));
        models::load_pretrained(model, folder.path);
        train(layout, folder, model, mesh, 4, texts_of);
      }));
    }
  }
}

TEST_CASE("a divided BERT writes the folder of a whole one") {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_bert")) {
    const auto options = models::bert_options(folder.path);
    models::Bert<Float32> whole(options);
    models::load_pretrained(whole, folder.path);
    const tests::TemporaryFolder written;
    models::save_pretrained(whole, written.path() / "whole");
    for (const Layout& layout : layouts) {
      INFO(folder.name() << ", " << layout.str());
      if (layout.ranks() == 1 || layout.data > 1) continue;
      CHECK_NOTHROW(testing::run_ranks(layout.ranks(), [&](const Group& world) {
        const ProcessMesh mesh = layout.mesh(world);
        models::Bert<Float32> model(options, layout.context(mesh));
        models::load_pretrained(model, folder.path);
        world.agree([&] { models::save_pretrained(model, written.path() / "joined"); });
        require_equal_files(written.path() / "joined", written.path() / "whole");
      }));
    }
  }
}

// Each rank drops the same elements as a whole model: of attention, of the residual stream and of the classifier's input.
TEST_CASE("dropout of a BERT does not depend on the mesh") {
  const tests::ModelFolder folder = tests::model_folders("folders_of_bert").back();
  models::BertOptions options = models::bert_options(folder.path);
  options.dropout = options.attention_dropout = 0.3;
  std::optional<double> wanted;  // of the first layout, a whole model
  for (const Layout& layout : layouts) {
    if (layout.micro_batches > 1) continue;  // they draw numbers of their own
    INFO(layout.str());
    std::vector<double> losses(static_cast<std::size_t>(layout.ranks()));  // the sums over some steps
    CHECK_NOTHROW(testing::run_ranks(layout.ranks(), [&](const Group& world) {
      const ProcessMesh mesh = layout.mesh(world);
      models::Bert<Float32> model(options, layout.context(mesh));
      models::load_pretrained(model, folder.path);
      parallel::DataParallel replicas(model, mesh, {.sharding = layout.sharding});
      const std::int64_t rows = 4 / layout.data;
      const std::vector<data::TextBatch> batches{texts_of(folder.expected(), mesh.data().rank() * rows, rows)};
      optim::Sgd optimizer(model, {.learning_rate = 0.01});
      for (std::int64_t number = 0; number < 3; ++number) {
        parallel::Step step = replicas.begin(number, 1);
        step.backward(model, batches);
        step.update(optimizer);
        losses[static_cast<std::size_t>(world.rank())] += step.finish().loss();
      }
    }));
    if (!wanted) wanted = losses.front();
    for (const double loss : losses) CHECK(loss == Approx(*wanted).epsilon(1e-5));
  }
}

namespace {

template <template <typename, typename> typename Net, typename Options>
void check_gpt(const tests::ModelFolder& folder, const Options& options) {
  Net<Float32, Cpu> whole(options);
  models::load_pretrained(whole, folder.path);
  const tests::TemporaryFolder written;
  models::save_pretrained(whole, written.path() / "whole");
  for (const Layout& layout : layouts) {
    INFO(folder.name() << ", " << layout.str());
    CHECK_NOTHROW(testing::run_ranks(layout.ranks(), [&](const Group& world) {
      const ProcessMesh mesh = layout.mesh(world);
      Net<Float32, Cpu> model(options, layout.context(mesh));
      models::load_pretrained(model, folder.path);
      if (layout.data == 1) {
        world.agree([&] { models::save_pretrained(model, written.path() / "joined"); });
        require_equal_files(written.path() / "joined", written.path() / "whole");
      }
      train(layout, folder, model, mesh, 4, windows_of);
    }));
  }
}

}  // namespace

TEST_CASE("GPT-2 and GPT-NeoX train on every mesh as by PyTorch, and a divided one writes the folder of a whole one") {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_gpt")) {
    if (folder.name() == "gpt2") {
      check_gpt<models::Gpt>(folder, models::gpt_options(folder.path));
    } else {
      check_gpt<models::GptNeoX>(folder, models::gpt_neox_options(folder.path));
    }
  }
}
