// Vision transformers, BERTs and GPTs of transformers on meshes of data, pipeline and tensor axes: the losses of PyTorch, the
// same files.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "parallel/mesh_layout.hpp"
#include "temporary_folder.hpp"
#include "trireme/models/hugging_face.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/step.hpp"
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

// The losses of SGD on the folder's batch, of which each micro-batch has its rows.
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

// Each rank draws what a whole model draws, of attention, of the residual stream and of what the classifier reads.
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

namespace {

// What each rank of a layout throws, in their order.
std::vector<std::string> errors_of(const Layout& layout, const std::function<void(const ModelContext&)>& work) {
  std::vector<std::string> errors(static_cast<std::size_t>(layout.ranks()));
  testing::run_ranks(layout.ranks(), [&](const Group& world) {
    const ProcessMesh mesh = layout.mesh(world);
    try {
      work(layout.context(mesh));
    } catch (const Error& error) {
      errors[static_cast<std::size_t>(world.rank())] = error.what();
    }
  });
  return errors;
}

tests::ModelFolder llama_folder() {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_transformers")) {
    if (folder.name() == "llama") return folder;
  }
  throw std::runtime_error("no folder of a Llama");
}

const std::vector<Layout> divided{{.pipeline = 2}, {.pipeline = 3}, {.tensor = 2}, {.pipeline = 2, .tensor = 2}};

}  // namespace

TEST_CASE("what a folder lacks or has beside is told of all stages, on all ranks alike") {
  const tests::ModelFolder folder = llama_folder();
  const models::LlamaOptions options = models::llama_options(folder.path);
  const tests::TemporaryFolder written;
  const fs::path file = written.path() / "model.safetensors";
  // The tensors of the folder by other names; what is named "" is left out.
  const auto write = [&](const std::function<std::string(const std::string&)>& name_of) {
    const SafetensorsFile original(folder.path / "model.safetensors");
    std::vector<std::vector<float>> values;
    std::vector<TensorRef> tensors;
    for (const SafetensorsEntry& entry : original.tensors()) {
      values.push_back(original.read_values<float>(entry.name));
      const std::string name = name_of(entry.name);
      if (!name.empty()) tensors.push_back({name, DType::float32, entry.shape, values.back().data()});
    }
    write_safetensors(file, tensors);
  };
  const auto load = [&](const ModelContext& context, bool allow_missing) {
    models::Llama<Float32> model(options, context);
    model.initialize({.seed = 1});
    const auto loaded = models::load_pretrained(model, written.path(), {.allow_missing = allow_missing});
    throw Error({.code = ErrorCode::internal,
                 .message = fmt::format("missing {}; unexpected {}", fmt::join(loaded.missing, ", "),
                                        fmt::join(loaded.unexpected, ", "))});
  };
  const auto check = [&](bool allow_missing, std::initializer_list<const char*> texts) {
    const auto said = [&](const Layout& layout) {
      return errors_of(layout, [&](const ModelContext& context) { load(context, allow_missing); });
    };
    for (const Layout& layout : divided) {
      INFO(layout.str());
      const std::vector<std::string> errors = said(layout);
      for (const std::string& error : errors) {
        CHECK(error == errors.front());
        for (const char* text : texts) CHECK_THAT(error, ContainsSubstring(text));
      }
    }
    CHECK_THAT(said({}).front(), ContainsSubstring(*texts.begin()));
  };
  const auto without_norms = [](const std::string& name) {
    return name == "model.layers.0.input_layernorm.weight" || name == "model.norm.weight" ? "" : name;
  };
  write(without_norms);
  check(false, {"lacks a tensor of the model", "model.layers.0.input_layernorm.weight, model.norm.weight"});
  check(true, {"missing model.layers.0.input_layernorm.weight, model.norm.weight; unexpected "});
  write([&](const std::string& name) { return name == "model.norm.weight" ? "model.other.weight" : name; });
  check(true, {"missing model.norm.weight; unexpected model.other.weight"});
  write([&](const std::string& name) { return name + ".of_another"; });
  check(true, {"holds no tensor of the model", "model.embed_tokens.weight"});
  // A part of a parameter alone, of the last stage.
  write([&](const std::string& name) { return name == "model.layers.1.self_attn.k_proj.weight" ? "" : name; });
  check(true, {"lacks a tensor of the model", "name model.layers.1.self_attn.k_proj.weight"});
  // What does not fit a tensor of the last stage.
  write([](const std::string& name) {
    return name == "model.norm.weight" ? "" : name == "lm_head.weight" ? "model.norm.weight" : name;
  });
  check(false, {"a tensor of the file does not fit the model", "name model.norm.weight"});
  fs::remove(file);
  check(true, {"has neither model.safetensors nor"});
}

TEST_CASE("ranks whose copies of a folder differ throw together") {
  const tests::ModelFolder folder = llama_folder();
  const models::LlamaOptions options = models::llama_options(folder.path);
  const tests::TemporaryFolder other;
  const SafetensorsFile original(folder.path / "model.safetensors");
  std::vector<std::vector<float>> values;
  std::vector<TensorRef> tensors;
  for (const SafetensorsEntry& entry : original.tensors()) {
    values.push_back(original.read_values<float>(entry.name));
    const bool is_left_out = entry.name == "model.norm.weight";
    tensors.push_back({is_left_out ? "another" : entry.name, DType::float32, entry.shape, values.back().data()});
  }
  write_safetensors(other.path() / "model.safetensors", tensors);
  for (const Layout& layout : divided) {
    INFO(layout.str());
    const auto errors = errors_of(layout, [&](const ModelContext& context) {
      models::Llama<Float32> model(options, context);
      const Axis& ranks = context.tensor != nullptr ? context.tensor : context.pipeline;
      models::load_pretrained(model, ranks->rank() == 1 ? other.path() : folder.path);
    });
    for (const std::string& error : errors) CHECK(!error.empty());
  }
}

TEST_CASE("a value that float16 does not hold is told on all ranks, and the folder stays as it was") {
  const tests::ModelFolder folder = llama_folder();
  const models::LlamaOptions options = models::llama_options(folder.path);
  for (const char* parameter : {"model.norm.weight", "model.layers.0.mlp.down_proj.weight"}) {
    for (const Layout& layout : divided) {
      INFO(parameter << ", " << layout.str());
      const tests::TemporaryFolder written;
      std::ofstream(written.path() / "model.safetensors") << "weights of another model";
      std::ofstream(written.path() / "config.json") << "{}";
      const auto save = [&](const ModelContext& context, DType dtype) {
        models::Llama<Float32> model(options, context);
        models::load_pretrained(model, folder.path);
        const int index = model.store().find(parameter);
        if (index >= 0) {
          const Tensor<float> values = model.store().read_values<float>(index);
          std::ranges::fill(values.span(), -65536.0F);
          model.store().write_values(index, values);
        }
        models::save_pretrained(model, written.path(), {.dtype = dtype});
      };
      for (const std::string& error : errors_of(layout, [&](const auto& context) { save(context, DType::float16); })) {
        CHECK_THAT(error, ContainsSubstring("a value is too large for weights of float16"));
        CHECK_THAT(error, ContainsSubstring("name " + std::string(parameter) + "; file "));
        CHECK_THAT(error, ContainsSubstring("had -65536; write the weights as bfloat16 or float32"));
      }
      CHECK(content(written.path() / "model.safetensors") == "weights of another model");
      CHECK(content(written.path() / "config.json") == "{}");
      for (const std::string& error : errors_of(layout, [&](const auto& context) { save(context, DType::bfloat16); })) {
        CHECK(error.empty());
      }
      CHECK(content(written.path() / "config.json") != "{}");
    }
  }
}

TEST_CASE("a folder that can't be written is told on all ranks alike") {
  const tests::ModelFolder folder = llama_folder();
  const models::LlamaOptions options = models::llama_options(folder.path);
  for (const char* blocked : {"config.json", "model.safetensors"}) {
    for (const Layout& layout : divided) {
      INFO(blocked << ", " << layout.str());
      const tests::TemporaryFolder written;
      fs::create_directories(written.path() / blocked / "in_the_way");
      const auto errors = errors_of(layout, [&](const ModelContext& context) {
        const models::Llama<Float32> model(options, context);
        model.store().initialize<float>(7);
        models::save_pretrained(model, written.path());
      });
      for (const std::string& error : errors) {
        CHECK(error == errors.front());
        CHECK_THAT(error, ContainsSubstring(blocked));
      }
    }
  }
}
