#include "models/folders/hugging_face_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "models/folders/expert_config.hpp"
#include "models/folders/model_config.hpp"
#include "trireme/models/folders/hugging_face.hpp"

namespace trireme::models {
namespace {

using ops::RotaryScaling;
using ops::RotaryScalingKind;

RotaryScaling llama3_scaling(const ConfigFile& rope) {
  const RotaryScaling scaling{.kind = RotaryScalingKind::llama3,
                              .factor = rope.number("factor"),
                              .trained_positions = static_cast<double>(rope.integer("original_max_position_embeddings")),
                              .low_frequency = rope.number("low_freq_factor"),
                              .high_frequency = rope.number("high_freq_factor")};
  if (!(scaling.low_frequency > 0)) rope.refuse("low_freq_factor", "a number above 0");
  if (scaling.high_frequency < scaling.low_frequency) rope.refuse("high_freq_factor", "a number from low_freq_factor on");
  return scaling;
}

RotaryScaling yarn_scaling(const ConfigFile& rope, std::int64_t longest) {
  const double factor = rope.number("factor");
  const auto of_scale = [factor](double scale) { return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1; };
  const double mscale = rope.number_or("mscale", 0), of_all = rope.number_or("mscale_all_dim", 0);
  const double standard = mscale != 0 && of_all != 0 ? of_scale(mscale) / of_scale(of_all) : of_scale(1);
  const auto trained = rope.integer_or("original_max_position_embeddings", longest);
  const RotaryScaling scaling{.kind = RotaryScalingKind::yarn,
                              .factor = factor,
                              .trained_positions = static_cast<double>(trained),
                              .beta_fast = rope.number_or("beta_fast", 32),
                              .beta_slow = rope.number_or("beta_slow", 1),
                              .truncate = rope.flag_or("truncate", true),
                              .attention_factor = rope.number_or("attention_factor", standard)};
  if (!(scaling.beta_fast > 0)) rope.refuse("beta_fast", "a number above 0");
  if (!(scaling.beta_slow > 0)) rope.refuse("beta_slow", "a number above 0");
  if (!(scaling.attention_factor > 0 && scaling.attention_factor < 1e6)) {
    rope.refuse("attention_factor", "a number above 0 and below 1e6, or mscale and mscale_all_dim that give one");
  }
  return scaling;
}

// Reads "rope_parameters" of transformers 5, or "rope_scaling" of all versions.
RotaryScaling scaling_of(const ConfigFile& rope, std::int64_t longest) {
  const std::string type = rope.text_or("rope_type", rope.text_or("type", "default"));
  rope.expect("partial_rotary_factor", 1.0);
  rope.ignore({"rope_theta", "original_max_position_embeddings", "finetuned"});  // finetuned: trained with the scaling
  RotaryScaling scaling;
  if (type == "linear") {
    scaling = {.kind = RotaryScalingKind::linear, .factor = rope.number("factor")};
  } else if (type == "llama3") {
    scaling = llama3_scaling(rope);
  } else if (type == "yarn") {
    scaling = yarn_scaling(rope, longest);
  } else if (type != "default") {
    rope.refuse(rope.has("rope_type") ? "rope_type" : "type", "default, linear, llama3 or yarn");
  }
  if (scaling.factor < 1) rope.refuse("factor", "a number from 1 on");
  rope.refuse_unknown();
  return scaling;
}

// The number of positions with a scaling. Configs may leave max_position_embeddings at the number before scaling; with a linear
// scaling they always do.
std::int64_t positions_of(const RotaryScaling& scaling, std::int64_t said) {
  const auto times_factor = [&scaling](double positions) {
    constexpr double most = 1LL << 40;
    return static_cast<std::int64_t>(std::min(most, std::floor(positions * scaling.factor)));
  };
  switch (scaling.kind) {
    case RotaryScalingKind::none: return said;
    case RotaryScalingKind::linear: return times_factor(static_cast<double>(said));
    case RotaryScalingKind::llama3:  // factor * trained_positions may exceed what a model was trained for
      if (static_cast<double>(said) > scaling.trained_positions) return said;
      break;
    case RotaryScalingKind::yarn: break;
  }
  return std::max(said, times_factor(scaling.trained_positions));
}

// The inverse of positions_of().
std::int64_t said_positions(const LlamaOptions& options) {
  const RotaryScaling& scaling = options.rotary_scaling;
  if (scaling.kind != RotaryScalingKind::linear) return options.block;
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(options.block) / scaling.factor - 1e-9));
}

double base_of(const ConfigFile& config, double otherwise) {
  const double base = config.number_or("rope_theta", otherwise);
  if (!(base > 1)) config.refuse("rope_theta", "a number above 1");
  return base;
}

// If a config has both keys, transformers uses only the older one, rope_scaling.
void read_rotary(const ConfigFile& config, double otherwise, LlamaOptions& options) {
  options.rotary_base = base_of(config, otherwise);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!config.has(key)) continue;
    const ConfigFile rope(config, key);
    if (rope.is_empty()) continue;
    options.rotary_base = base_of(rope, options.rotary_base);
    options.rotary_scaling = scaling_of(rope, options.block);
    options.block = positions_of(options.rotary_scaling, options.block);
    break;
  }
  config.ignore({"rope_scaling", "rope_parameters"});
}

// Reads the window. mistral has one in all layers unless it is null, mixtral only if it is given. Qwen has a flag for it, and
// says from which layer on or in which layers it applies.
void read_window(const ConfigFile& config, const std::string& type, LlamaOptions& options) {
  constexpr std::int64_t standard = 4096;
  const bool is_qwen = type.starts_with("qwen");
  const bool is_mixtral = type == "mixtral";
  const bool has_window = type == "mistral" || is_mixtral || (is_qwen && config.flag_or("use_sliding_window", false));
  const std::int64_t said =
      config.is_absent("sliding_window") && !is_mixtral ? standard : config.integer_or("sliding_window", 0);
  options.window = has_window ? said : 0;
  const std::int64_t first = config.integer_or("max_window_layers", 28, 0);
  const auto types = config.texts("layer_types");
  if (types && std::ssize(*types) != options.layers) config.refuse("layer_types", "one for each of num_hidden_layers");
  for (int layer = 0; layer < options.layers; ++layer) {
    bool windowed = options.window > 0 && (!is_qwen || layer >= first);
    if (types) {
      const std::string& kind = (*types)[static_cast<std::size_t>(layer)];
      const bool told = kind == "sliding_attention";
      if (!told && kind != "full_attention") config.refuse("layer_types", "full_attention and sliding_attention");
      if (told && options.window == 0) config.refuse("layer_types", "full_attention, for there is no sliding window");
      if (!is_qwen && told != windowed) config.refuse("layer_types", "sliding_attention, for a Mistral has its window in all");
      windowed = told;
    }
    options.windowed.push_back(windowed);
  }
  options = with_plain_windows(options);
}

// If the key is absent, the default of the model_type; if it is null, the number of heads.
int kv_heads_of(const ConfigFile& config, const std::string& type, int heads) {
  const int standard = type == "mistral" || type == "mixtral" ? 8
                       : type == "qwen2_moe"                  ? 16
                       : type == "qwen3_moe"                  ? 4
                       : type.starts_with("qwen")             ? 32
                                                              : heads;
  const auto found = config.integer_or("num_key_value_heads", config.is_absent("num_key_value_heads") ? standard : heads);
  if (found > heads || heads % found != 0) config.refuse("num_key_value_heads", "a divisor of num_attention_heads");
  return static_cast<int>(found);
}

}  // namespace

LlamaOptions with_plain_windows(LlamaOptions options) {
  const auto count = std::ranges::count(options.windowed, true);
  if (!options.windowed.empty() && count == 0) options.window = 0;
  if (options.window == 0 || count == std::ssize(options.windowed)) options.windowed.clear();
  return options;
}

LlamaOptions llama_options(const Location& path) {
  const ConfigFile config = config_at(path);
  require_family(config, Family::llama);
  const std::string type = config.text("model_type");
  const std::string base = type_without_experts(type);
  const bool has_experts = type != base;
  const std::int64_t longest = base == "mistral" ? 131072 : base == "llama" ? 2048 : 32768;
  LlamaOptions options{.layers = count_of(config, "num_hidden_layers"),
                       .heads = count_of(config, "num_attention_heads"),
                       .width = config.integer("hidden_size"),
                       .hidden = config.integer("intermediate_size"),
                       .vocabulary = config.integer("vocab_size", 2),
                       .block = config.integer_or("max_position_embeddings", longest),
                       .epsilon = not_negative(config, "rms_norm_eps", type == "mixtral" ? 1e-5 : 1e-6),
                       .tied = is_tied(config, path, llama_head(), llama_prefix),
                       .unused_attention_dropout = probability_of(config, "attention_dropout", 0),
                       .weight_deviation = not_negative(config, "initializer_range", 0.02)};
  options.kv_heads = kv_heads_of(config, type, options.heads);
  options.head_size = config.integer_or("head_dim", type == "qwen3" ? 128 : 0, 2);
  if (options.head_size == 0 && options.width % options.heads != 0) {
    config.refuse("num_attention_heads", "a divisor of hidden_size, or a head_dim");
  }
  config.expect("hidden_act", "silu");
  options.query_key_norm = base == "qwen3";
  options.mlp_bias = base == "llama" && config.flag_or("mlp_bias", false);
  if (base == "llama" || base == "qwen3") {
    options.attention_bias = options.output_bias = config.flag_or("attention_bias", false);
  } else {
    options.attention_bias = base == "qwen2";
  }
  if (type == "qwen2_moe") options.attention_bias = config.flag_or("qkv_bias", true);
  read_rotary(config, type == "mixtral" ? 1e6 : 10000, options);
  if (has_experts) read_experts(config, type, options);
  if (!has_experts || type == "mixtral") {
    read_window(config, type, options);
  } else if (const auto types = config.texts("layer_types")) {
    if (std::ranges::count(*types, "full_attention") != options.layers) {
      config.refuse("layer_types", "full_attention for each of num_hidden_layers");
    }
  }
  config.ignore({"sliding_window", "use_sliding_window"});
  // Dropout that no Llama of transformers has, or that belongs to a classifier.
  config.ignore({"classifier_dropout", "attention_probs_dropout_prob", "attn_pdrop", "embd_pdrop", "hidden_dropout",
                 "hidden_dropout_prob", "resid_pdrop"});
  refuse_the_rest(config);
  return options;
}

namespace {

// transformers refuses a Llama whose heads do not divide its width.
std::string type_of(const LlamaOptions& options) {
  if (options.experts.count > 0) return type_with_experts(options);
  if (options.query_key_norm) return "qwen3";
  if (options.attention_bias && !options.output_bias) return "qwen2";
  const bool beyond_llama = options.window > 0 || options.width % options.heads != 0;
  return beyond_llama && options.windowed.empty() && !options.attention_bias && !options.mlp_bias ? "mistral" : "llama";
}

std::string name_of_kind(RotaryScalingKind kind) {
  switch (kind) {
    case RotaryScalingKind::none: return "default";
    case RotaryScalingKind::linear: return "linear";
    case RotaryScalingKind::llama3: return "llama3";
    case RotaryScalingKind::yarn: break;
  }
  return "yarn";
}

// The JSON that all versions of transformers read; null for no scaling.
nlohmann::ordered_json rope_json(const RotaryScaling& scaling) {
  if (scaling.kind == RotaryScalingKind::none) return nullptr;
  nlohmann::ordered_json rope{{"rope_type", name_of_kind(scaling.kind)}, {"factor", scaling.factor}};
  if (scaling.kind == RotaryScalingKind::linear) return rope;
  rope["original_max_position_embeddings"] = static_cast<std::int64_t>(scaling.trained_positions);
  if (scaling.kind == RotaryScalingKind::llama3) {
    rope["low_freq_factor"] = scaling.low_frequency;
    rope["high_freq_factor"] = scaling.high_frequency;
  } else {
    rope["beta_fast"] = scaling.beta_fast;
    rope["beta_slow"] = scaling.beta_slow;
    rope["truncate"] = scaling.truncate;
    rope["attention_factor"] = scaling.attention_factor;
  }
  return rope;
}

}  // namespace

nlohmann::ordered_json config_of(const LlamaOptions& given, DType dtype) {
  const LlamaOptions options = with_plain_windows(given);
  const std::string type = type_of(options), base = type_without_experts(type);
  const bool is_qwen = base.starts_with("qwen");
  if (base != "llama" && options.mlp_bias) refuse_to_save("these biases of attention and MLP, norms or windows");
  if (base == "llama" && options.width % options.heads != 0) refuse_to_save("heads of this size and biases");
  if (base == "llama" && options.window > 0) refuse_to_save("a window and biases, or a window in some layers without biases");
  if (base == "llama" && options.attention_bias != options.output_bias) refuse_to_save("a bias of o_proj alone");
  if (base == "qwen3" && options.attention_bias != options.output_bias)
    refuse_to_save("norms of queries and one of these biases");
  const std::int64_t head_size = options.head_size == 0 ? options.width / options.heads : options.head_size;
  const std::string architecture = type == "llama"       ? "Llama"
                                   : type == "mistral"   ? "Mistral"
                                   : type == "mixtral"   ? "Mixtral"
                                   : type == "qwen2"     ? "Qwen2"
                                   : type == "qwen2_moe" ? "Qwen2Moe"
                                   : type == "qwen3"     ? "Qwen3"
                                                         : "Qwen3Moe";
  nlohmann::ordered_json config{{"architectures", {architecture + "ForCausalLM"}},
                                {"model_type", type},
                                {"dtype", std::string(name_of(dtype))},
                                {"vocab_size", options.vocabulary},
                                {"hidden_size", options.width},
                                {"intermediate_size", options.hidden},
                                {"num_hidden_layers", options.layers},
                                {"num_attention_heads", options.heads},
                                {"num_key_value_heads", options.kv_heads == 0 ? options.heads : options.kv_heads},
                                {"max_position_embeddings", said_positions(options)},
                                {"hidden_act", "silu"},
                                {"rms_norm_eps", options.epsilon},
                                {"initializer_range", options.weight_deviation},
                                {"attention_dropout", options.unused_attention_dropout},
                                {"tie_word_embeddings", options.tied},
                                {"rope_theta", options.rotary_base},
                                {"rope_scaling", rope_json(options.rotary_scaling)},
                                {"bos_token_id", nullptr},  // none; if the key is absent, transformers takes other defaults
                                {"eos_token_id", nullptr},
                                {"pad_token_id", nullptr}};
  if (options.experts.count > 0) add_experts(options, type, config);
  if (base != "qwen2" || head_size * options.heads != options.width) config["head_dim"] = head_size;
  if (base == "llama" || base == "qwen3") config["attention_bias"] = options.attention_bias;
  if (base == "llama") config["mlp_bias"] = options.mlp_bias;
  if (is_qwen) config["use_sliding_window"] = options.window > 0;
  if (base != "llama" && (!is_qwen || options.experts.count == 0))
    config["sliding_window"] = options.window > 0 ? nlohmann::ordered_json(options.window) : nullptr;
  if (is_qwen && options.window > 0) {
    for (int layer = 0; layer < options.layers; ++layer) {
      const bool windowed = options.windowed.empty() || options.windowed[static_cast<std::size_t>(layer)];
      config["layer_types"].push_back(windowed ? "sliding_attention" : "full_attention");
    }
  }
  return config;
}

}  // namespace trireme::models
