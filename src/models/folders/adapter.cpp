#include "trireme/models/folders/adapter.hpp"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "files/config_file.hpp"
#include "models/folders/pretrained_folder.hpp"
#include "trireme/models/folders/gpt2_safetensors.hpp"

namespace trireme::models {
namespace {

constexpr const char* config_name = "adapter_config.json";
constexpr const char* weights_name = "adapter_model.safetensors";
constexpr const char* prefix = "base_model.model.";

std::vector<std::string> targets_of(const ConfigFile& config) {
  const nlohmann::json* targets = config.value("target_modules");
  if (targets != nullptr && targets->is_string()) {
    if (*targets != LoraOptions::all_linear) config.refuse("target_modules", "a list of names, or all-linear");
    return {std::string(LoraOptions::all_linear)};
  }
  return config.texts("target_modules").value_or(std::vector<std::string>{});
}

// Accepts only initializations that leave the model's own weights unchanged.
void check_first_values(const ConfigFile& config) {
  const nlohmann::json* way = config.value("init_lora_weights");
  if (way == nullptr || way->is_boolean() || *way == "gaussian" || *way == "orthogonal" || *way == "eva") return;
  config.refuse("init_lora_weights", "true, false, gaussian, orthogonal or eva: others change the model's own weights");
}

void refuse_others(const ConfigFile& config) {
  config.expect("bias", "none");
  for (const char* key : {"lora_bias", "use_dora", "use_qalora", "ensure_weight_tying"}) config.expect(key, false);
  for (const char* key : {"alpha_pattern", "rank_pattern", "loftq_config"}) config.expect(key, nlohmann::json::object());
  config.expect_nothing({"modules_to_save", "exclude_modules", "layers_to_transform", "layer_replication", "target_parameters",
                         "trainable_token_indices", "alora_invocation_tokens", "arrow_config", "kasa_config", "megatron_config",
                         "monteclora_config", "use_bdlora", "velora_config"});
  config.ignore({"auto_mapping", "base_model_name_or_path", "corda_config", "eva_config", "fan_in_fan_out", "inference_mode",
                 "layers_pattern", "lora_ga_config", "megatron_core", "peft_version", "qalora_group_size", "revision",
                 "task_type"});
  config.refuse_unknown();
}

// Each part of a packed layer has its own tensors.
nn::WeightsFormat format_of(const Model& model, DType dtype) {
  const std::int64_t rank = model.context().lora->rank;
  const auto parts = [&model, rank](const std::string& parameter) {
    constexpr std::size_t ending = std::string_view(".lora_A.weight").size();
    const std::string module = parameter.substr(0, parameter.size() - ending);
    const std::string name = parameter.substr(parameter.size() - ending);
    std::vector<nn::StoredRows> tensors;
    for (const TargetableLayer& layer : model.targetable()) {
      if (layer.module != module) continue;
      for (const TargetableLayer::Part& part : layer.parts) {
        if (part.is_target) tensors.push_back({.name = part.name + name, .count = name[6] == 'A' ? rank : part.rows});
      }
    }
    return tensors;
  };
  return {.parts = parts, .dtype = dtype, .adapter = true};
}

void require_adapters(const Model& model, const char* function) {
  require(model.context().lora.has_value(),
          "{} needs a model with adapters: make it with ModelContext::lora, of LoraOptions or of lora_options(folder)",
          function);
  require(!model.adapter_merged(), "{} needs adapters that are not merged into the weights", function);
}

}  // namespace

LoraOptions lora_options(const Location& folder) {
  const ConfigFile config(folder / config_name, "an adapter's config");
  if (config.text("peft_type") != "LORA") config.refuse("peft_type", "LORA");
  LoraOptions options{.rank = static_cast<int>(config.integer_or("r", 8)),
                      .alpha = config.number_or("lora_alpha", 8),
                      .dropout = config.number_or("lora_dropout", 0),
                      .targets = targets_of(config),
                      .rank_stabilized = config.flag_or("use_rslora", false)};
  if (config.integer_or("r", 8) > 1 << 20) config.refuse("r", "a rank of at most 1048576");
  if (!(options.dropout >= 0 && options.dropout < 1)) config.refuse("lora_dropout", "a number in [0, 1)");
  if (options.targets.empty()) config.refuse("target_modules", "a list of names, or all-linear");
  check_first_values(config);
  refuse_others(config);
  options.check();
  return options;
}

void load_adapter(Model& model, const Location& folder) {
  require_adapters(model, "load_adapter()");
  const auto check = [&] {
    const LoraOptions stored = lora_options(folder), &here = *model.context().lora;
    require(stored.rank == here.rank && stored.scale() == here.scale(),
            "the adapter in {} has rank {} and scale {}, the model's adapters have {} and {}: make the model with "
            "lora_options(folder)",
            folder.string(), stored.rank, stored.scale(), here.rank, here.scale());
  };
  nn::agree(model, check, "check an adapter");
  nn::load_weights({{.prefix = prefix, .model = model}}, folder / weights_name, format_of(model, DType::float32));
}

void save_adapter(Model& model, const Location& folder, const SaveAdapterOptions& options) {
  require_adapters(model, "save_adapter()");
  const LoraOptions& lora = *model.context().lora;
  std::set<std::string> targets;
  bool is_transposed = false;
  for (const TargetableLayer& layer : model.targetable()) {
    for (const TargetableLayer::Part& part : layer.parts) {
      if (!part.is_target) continue;
      targets.insert(part.name);
      is_transposed = is_transposed || stored_transposed(part.name + ".weight");
    }
  }
  const bool all = lora.targets.front() == LoraOptions::all_linear;
  const nlohmann::ordered_json config{
      {"peft_type", "LORA"},
      {"task_type", options.task_type},
      {"base_model_name_or_path", options.base_model},
      {"r", lora.rank},
      {"lora_alpha", lora.alpha == std::floor(lora.alpha) && std::abs(lora.alpha) < 1e15
                         ? nlohmann::ordered_json(static_cast<std::int64_t>(lora.alpha))
                         : nlohmann::ordered_json(lora.alpha)},
      {"lora_dropout", lora.dropout},
      {"target_modules", all ? nlohmann::ordered_json(targets) : nlohmann::ordered_json(lora.targets)},
      {"use_rslora", lora.rank_stabilized},
      {"bias", "none"},
      {"fan_in_fan_out", is_transposed},
      {"init_lora_weights", true},
      {"inference_mode", true}};
  write_folder({.prefix = prefix, .model = model}, format_of(model, options.dtype), folder, weights_name,
               [&] { write_json(config, folder / config_name); });
}

}  // namespace trireme::models
