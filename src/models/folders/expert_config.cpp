#include "models/folders/expert_config.hpp"

#include <fmt/format.h>

#include <array>

namespace trireme::models {
namespace {

std::int64_t hidden_of(const LlamaOptions& options) {
  return options.experts.hidden == 0 ? options.hidden : options.experts.hidden;
}

bool is_mixtral(const LlamaOptions& options) { return !options.query_key_norm && options.experts.shared_hidden == 0; }

// Requires that all layers have experts, and none has a window.
void refuse_other_layers(const ConfigFile& config) {
  config.expect("decoder_sparse_step", 1);
  config.expect("mlp_only_layers", nlohmann::json::array());
  config.expect("use_sliding_window", false);
  config.ignore({"sliding_window", "max_window_layers"});
}

}  // namespace

std::string type_without_experts(const std::string& type) {
  if (type == "mixtral") return "mistral";
  constexpr std::string_view ending = "_moe";
  return type.ends_with(ending) ? type.substr(0, type.size() - ending.size()) : type;
}

void read_experts(const ConfigFile& config, const std::string& type, LlamaOptions& options) {
  nn::MixtureOfExpertsOptions& experts = options.experts;
  if (type == "mixtral") {
    experts = {.count = config.integer_or("num_local_experts", 8), .top_k = config.integer_or("num_experts_per_tok", 2)};
    config.expect("router_jitter_noise", 0.0);
  } else {
    const bool is_qwen2 = type == "qwen2_moe";
    const char* const count = config.has("num_local_experts") ? "num_local_experts" : "num_experts";
    experts = {.count = config.integer_or(count, is_qwen2 ? 60 : 128),
               .top_k = config.integer_or("num_experts_per_tok", is_qwen2 ? 4 : 8),
               .hidden = config.integer_or("moe_intermediate_size", is_qwen2 ? 1408 : 768),
               .renormalise = config.flag_or("norm_topk_prob", false),
               .shared_hidden = is_qwen2 ? config.integer_or("shared_expert_intermediate_size", 5632) : 0,
               .shared_gate = is_qwen2};
    config.expect("num_experts", experts.count);
    refuse_other_layers(config);
  }
  if (experts.top_k > experts.count) config.refuse("num_experts_per_tok", "at most as many as there are experts");
  const double factor = config.number_or("router_aux_loss_coef", 0.001);
  if (!(factor >= 0)) config.refuse("router_aux_loss_coef", "a number from 0 on");
  if (config.flag_or("output_router_logits", false)) experts.auxiliary_loss = factor;
  if (experts.auxiliary_loss == 0) options.unused_auxiliary_loss = factor;
}

std::string type_with_experts(const LlamaOptions& options) {
  const nn::MixtureOfExpertsOptions& experts = options.experts;
  if (experts.capacity_factor > 0) refuse_to_save("a capacity of experts (save it with options whose capacity_factor is 0)");
  if (options.mlp_bias) refuse_to_save("experts and biases of an MLP");
  if (options.query_key_norm) {
    if (experts.shared_hidden > 0) refuse_to_save("norms of queries and an expert that all tokens share");
    if (options.window > 0) refuse_to_save("norms of queries, experts and a window");
    return "qwen3_moe";
  }
  if (experts.shared_hidden > 0) {
    if (!experts.shared_gate) refuse_to_save("an expert that all tokens share without a gate");
    if (options.output_bias || options.window > 0) {
      refuse_to_save("an expert that all tokens share and this attention");
    }
    return "qwen2_moe";
  }
  if (!experts.renormalise) refuse_to_save("experts by plain probabilities and no norms of queries");
  if (options.attention_bias || options.output_bias || !options.windowed.empty()) {
    refuse_to_save("these experts and biases of attention, or a window in some layers");
  }
  return "mixtral";
}

void add_experts(const LlamaOptions& options, const std::string& type, nlohmann::ordered_json& config) {
  const nn::MixtureOfExpertsOptions& experts = options.experts;
  config["num_experts_per_tok"] = experts.top_k;
  config["output_router_logits"] = experts.auxiliary_loss > 0;
  config["router_aux_loss_coef"] = experts.auxiliary_loss > 0 ? experts.auxiliary_loss : options.unused_auxiliary_loss;
  // A qwen3_moe gets both names, since transformers 4 and 5 read different ones.
  if (type != "mixtral") config["num_experts"] = experts.count;
  if (type != "qwen2_moe") config["num_local_experts"] = experts.count;
  if (type == "mixtral") {
    config["intermediate_size"] = hidden_of(options);
    return;
  }
  config["moe_intermediate_size"] = hidden_of(options);
  config["norm_topk_prob"] = experts.renormalise;
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = nlohmann::ordered_json::array();
  if (type != "qwen2_moe") return;
  config["shared_expert_intermediate_size"] = experts.shared_hidden;
  config["qkv_bias"] = options.attention_bias;
}

std::vector<nn::StoredRows> stored_experts(const LlamaOptions& options, const std::string& parameter) {
  const std::size_t place = parameter.find("mlp.");
  if (options.experts.count == 0 || place == std::string::npos) return {};
  const std::string layer = parameter.substr(0, place), name = parameter.substr(place + 4);
  const std::string block = layer + (is_mixtral(options) ? "block_sparse_moe." : "mlp.");
  if (name == "gate.weight") return {{.name = block + name, .count = options.experts.count}};
  constexpr std::array<std::array<const char*, 2>, 3> projections{
      {{"gate_proj", "w1"}, {"down_proj", "w2"}, {"up_proj", "w3"}}};
  std::vector<nn::StoredRows> parts;
  for (const auto& [own, mixtral] : projections) {
    if (name != fmt::format("experts.{}", own)) continue;
    const std::int64_t rows = name == "experts.down_proj" ? options.width : hidden_of(options);
    for (std::int64_t expert = 0; expert < options.experts.count; ++expert) {
      parts.push_back(
          {.name = fmt::format("{}experts.{}.{}.weight", block, expert, is_mixtral(options) ? mixtral : own), .count = rows});
    }
  }
  return parts;
}

void refuse_to_save(const std::string& what) {
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("no model of transformers has {}", what),
               .hint = "save the weights by nn::save_weights()"});
}

}  // namespace trireme::models
