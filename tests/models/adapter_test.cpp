// Adapters of PEFT: the same logits, reading and writing of its files, and errors.

#include "trireme/models/folders/adapter.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "catch.hpp"
#include "fixtures.hpp"
#include "models/adapted_models.hpp"
#include "temporary_folder.hpp"
#include "trireme/models/folders/hugging_face.hpp"
#include "trireme/nn/weights/lora.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

tests::ModelFolder folder_named(const char* name) {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_peft")) {
    if (folder.name() == name) return folder;
  }
  throw std::runtime_error(std::string("no folder ") + name);
}

models::LlamaOptions small_llama() {
  return {.layers = 2, .heads = 2, .width = 16, .hidden = 24, .vocabulary = 19, .block = 8};
}

ModelContext adapted(LoraOptions options) {
  ModelContext context;
  context.lora = std::move(options);
  return context;
}

void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

}  // namespace

TEST_CASE("models with adapters of PEFT give its logits, merged or not") {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_peft")) {
    CAPTURE(folder.name());
    const auto wanted = tests::read_floats(folder.expected(), "logits");
    const auto tokens = tests::windows_of(folder);
    tests::with_adapted<Float32>(folder, {}, [&](auto& model) {
      const auto apart = model.logits(tokens).value();
      CHECK(tests::mismatch(apart.span(), wanted, {.atol = 1e-4, .rtol = 0}) == "");
      nn::merge_adapter(model);
      const auto merged = model.logits(tokens).value();
      CHECK(tests::mismatch(merged.span(), apart.span(), {.atol = 1e-5, .rtol = 1e-5}) == "");
      CHECK_THROWS_WITH(nn::merge_adapter(model), ContainsSubstring("merged already"));
    });
    const auto error_of = [&]<typename P>(P) {
      double error = 0, norm = 0;
      tests::with_adapted<P>(folder, {}, [&](auto& model) {
        const auto logits = model.logits(tokens).value();
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          error += std::pow(static_cast<float>(logits.span()[i]) - wanted[i], 2);
          norm += std::pow(wanted[i], 2);
        }
      });
      return std::sqrt(error / norm);
    };
    CHECK(error_of(MixedBfloat16()) < 0.03);
    CHECK(error_of(MixedFloat16()) < 0.004);
  }
}

TEST_CASE("an adapter is written as it was read, and the model with it merged") {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_peft")) {
    CAPTURE(folder.name());
    const tests::TemporaryFolder written;
    const LoraOptions before = models::lora_options(folder.path);
    tests::with_adapted<Float32>(folder, {}, [&](auto& model) {
      models::save_adapter(model, written.path() / "adapter", {.base_model = "base"});
      models::save_pretrained(model, written.path() / "merged");
      models::save_adapter(model, written.path() / "half", {.dtype = DType::bfloat16});
    });
    const SafetensorsFile original(folder.path / "adapter_model.safetensors");
    const SafetensorsFile copy(written.path() / "adapter" / "adapter_model.safetensors");
    CHECK(tests::differing_tensors(original, copy).empty());
    const LoraOptions after = models::lora_options(written.path() / "adapter");
    CHECK(after.rank == before.rank);
    CHECK(after.scale() == before.scale());
    CHECK(after.targets == before.targets);
    const json config = tests::read_json(written.path() / "adapter" / "adapter_config.json");
    CHECK(config.at("base_model_name_or_path") == "base");
    CHECK(config.at("fan_in_fan_out") == (tests::type_of(folder) == "gpt2"));
    CHECK(SafetensorsFile(written.path() / "half" / "adapter_model.safetensors").tensors().front().dtype == DType::bfloat16);

    const SafetensorsFile base(folder.path / "model.safetensors"), merged(written.path() / "merged" / "model.safetensors");
    CHECK(merged.tensors().size() == base.tensors().size());
    if (tests::type_of(folder) != "llama") continue;
    models::Llama<Float32> model(models::llama_options(written.path() / "merged"));
    models::load_pretrained(model, written.path() / "merged");
    CHECK(tests::mismatch(model.logits(tests::windows_of(folder)).value().span(),
                          tests::read_floats(folder.expected(), "logits"), {.atol = 1e-4, .rtol = 0}) == "");
  }
}

TEST_CASE("a new adapter changes nothing at first, and is all that is trained") {
  models::Llama<Float32> base(small_llama());
  base.initialize();
  models::Llama<Float32> model(small_llama(), adapted({.rank = 2, .targets = {"q_proj", "v_proj", "down_proj"}}));
  model.initialize();
  const auto tokens = Tensor<std::int32_t>::from({1, 4}, {3, 1, 4, 1});
  CHECK(std::ranges::equal(model.logits(tokens).value().span(), base.logits(tokens).value().span()));
  std::int64_t trained = 0;
  for (int index = 0; index < model.store().num_parameters(); ++index) {
    const ParameterInfo& info = model.store().parameter(index);
    CHECK(info.trainable == nn::is_of_adapter(info.name));
    if (info.trainable) trained += info.numel;
  }
  CHECK(trained == 2 * (2 * 2 * 16 + 2 * 2 * 16 + 2 * (24 + 16)));
  const int a = model.store().find("model.layers.1.self_attn.qkv_proj.lora_A.weight");
  REQUIRE(a >= 0);
  double largest = 0;
  for (const float value : model.store().read_values<float>(a).span()) largest = std::max(largest, std::abs(double(value)));
  CHECK(largest > 0.2);  // uniform in +-1 / sqrt(16), as PEFT draws it
  CHECK(largest <= 0.25);
}

TEST_CASE("LoRA that a model can't have is refused") {
  const auto refused = [](LoraOptions options, const char* text) {
    CHECK_THROWS_WITH(models::Llama<Float32>(small_llama(), adapted(std::move(options))), ContainsSubstring(text));
  };
  refused({.rank = 0, .targets = {"q_proj"}}, "the rank of LoRA is above 0, got 0");
  refused({.alpha = std::numeric_limits<double>::quiet_NaN(), .targets = {"q_proj"}}, "alpha of LoRA is a finite number");
  refused({.dropout = 1, .targets = {"q_proj"}}, "lies in [0, 1), got 1");
  refused({}, "LoRA has no targets");
  refused({.targets = {"all-linear", "q_proj"}}, "all-linear can't be combined with others");
  refused({.targets = {"q_proj", "query"}},
          "LoRA's target query is no linear layer of this model; it has down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, "
          "v_proj, or all-linear");
  refused({.targets = {"proj"}}, "LoRA's target proj is no linear layer");
  CHECK_THROWS_WITH(models::Bert<Float32>({}, adapted({.targets = {"query"}})), ContainsSubstring("a Bert has no LoRA yet"));
  CHECK_THROWS_WITH(models::VisionTransformer<Float32>({}, adapted({.targets = {"query"}})),
                    ContainsSubstring("has no LoRA yet"));
  const models::Llama<Float32> plain(small_llama());
  CHECK_THROWS_WITH(models::save_adapter(plain, "nowhere"), ContainsSubstring("save_adapter() needs a model with adapters"));
  CHECK_THROWS_WITH(nn::merge_adapter(plain), ContainsSubstring("without adapters"));

  // Experts stay as they are.
  models::LlamaOptions experts = small_llama();
  experts.experts = {.count = 4, .top_k = 2, .hidden = 8};
  CHECK_THROWS_WITH(models::Llama<Float32>(experts, adapted({.targets = {"gate_proj"}})),
                    ContainsSubstring("it has k_proj, o_proj, q_proj, v_proj, or"));
}

TEST_CASE("adapters of other models, kinds and options are refused by name") {
  const tests::ModelFolder folder = folder_named("llama_qv");
  const tests::TemporaryFolder changed;
  const json config = tests::read_json(folder.path / "adapter_config.json");
  const auto refused = [&](const char* key, const json& value) {
    CAPTURE(key);
    json other = config;
    other[key] = value;
    write(changed.path() / "adapter_config.json", other.dump());
    CHECK_THROWS_WITH(models::lora_options(changed.path()), ContainsSubstring(key));
  };
  refused("peft_type", "PREFIX_TUNING");
  refused("r", 0);
  refused("r", 1.5);
  refused("lora_alpha", "sixteen");
  refused("lora_dropout", 1.0);
  refused("target_modules", ".*_proj");
  refused("target_modules", json::array());
  refused("bias", "all");
  refused("use_dora", true);
  refused("modules_to_save", {"lm_head"});
  refused("target_parameters", {"mlp.experts.gate_up_proj"});
  refused("rank_pattern", {{"q_proj", 2}});
  refused("alpha_pattern", {{"q_proj", 2}});
  refused("layers_to_transform", {0});
  refused("init_lora_weights", "pissa");
  refused("lora_twist", 1);

  json empty = config;  // as PEFT writes what is not used
  for (const char* const key : {"modules_to_save", "target_parameters", "exclude_modules", "layers_to_transform"}) {
    empty[key] = json::array();
  }
  write(changed.path() / "adapter_config.json", empty.dump());
  CHECK_NOTHROW(models::lora_options(changed.path()));

  const auto load = [&](models::LlamaOptions options, const LoraOptions& lora, const fs::path& from) {
    models::Llama<Float32> model(options, adapted(lora));
    model.initialize();
    models::load_adapter(model, from);
  };
  const models::LlamaOptions sizes = models::llama_options(folder.path);
  LoraOptions lora = models::lora_options(folder.path);
  CHECK_NOTHROW(load(sizes, lora, folder.path));
  models::LlamaOptions wider = sizes;
  wider.width = 48;
  CHECK_THROWS_WITH(load(wider, lora, folder.path), ContainsSubstring("does not fit the model"));
  LoraOptions other = lora;
  other.rank = 3;
  CHECK_THROWS_WITH(load(sizes, other, folder.path), ContainsSubstring("has rank 4 and scale 2, the model's adapters have 3"));
  other = lora;
  other.targets = {"q_proj", "k_proj", "v_proj"};
  CHECK_THROWS_WITH(load(sizes, other, folder.path), ContainsSubstring("lacks a tensor"));
  other.targets = {"q_proj"};
  CHECK_THROWS_WITH(load(sizes, other, folder.path), ContainsSubstring("a tensor that the model lacks"));

  write(changed.path() / "adapter_config.json", config.dump());
  CHECK_THROWS_WITH(load(sizes, lora, changed.path()), ContainsSubstring("adapter_model.safetensors"));
  fs::copy_file(folder.path / "adapter_model.safetensors", changed.path() / "adapter_model.safetensors");
  fs::resize_file(changed.path() / "adapter_model.safetensors", 3000);
  CHECK_THROWS_WITH(load(sizes, lora, changed.path()), ContainsSubstring("adapter_model.safetensors"));
}
