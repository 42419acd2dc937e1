// Transformers folders that do not fit the model, or can't be written, on meshes: all ranks throw the same error.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "parallel/mesh_layout.hpp"
#include "temporary_folder.hpp"
#include "trireme/models/architectures/llama.hpp"
#include "trireme/models/folders/hugging_face.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using tests::Layout;

namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The error of each rank of a layout, in rank order.
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
  // Renames the tensors of the folder; a tensor with the new name "" is left out.
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
  // A tensor of the last stage does not fit.
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
