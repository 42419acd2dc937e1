#include "trireme/models/hugging_face.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

#include "models/config_file.hpp"
#include "trireme/core/file.hpp"
#include "trireme/nn/weights_format.hpp"

namespace trireme::models {
namespace {

using ops::RotaryScaling;
using ops::RotaryScalingKind;

// The object that holds a config's rotary options: of transformers 5 "rope_parameters", before "rope_scaling", with the base
// outside.
RotaryScaling scaling_of(const ConfigFile& rope, double longest) {
  const std::string type = rope.text_or("rope_type", rope.text_or("type", "default"));
  rope.expect("partial_rotary_factor", 1.0);
  rope.ignore({"rope_theta", "original_max_position_embeddings"});
  RotaryScaling scaling;
  if (type == "linear") {
    scaling = {.kind = RotaryScalingKind::linear, .factor = rope.number("factor")};
  } else if (type == "llama3") {
    scaling = {.kind = RotaryScalingKind::llama3,
               .factor = rope.number("factor"),
               .trained_positions = rope.number("original_max_position_embeddings"),
               .low_frequency = rope.number("low_freq_factor"),
               .high_frequency = rope.number("high_freq_factor")};
  } else if (type == "yarn") {
    const double factor = rope.number("factor");
    const auto of_scale = [factor](double scale) { return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1; };
    double attention_factor = of_scale(1);
    if (rope.has("mscale") && rope.has("mscale_all_dim")) {
      attention_factor = of_scale(rope.number("mscale")) / of_scale(rope.number("mscale_all_dim"));
    }
    scaling = {.kind = RotaryScalingKind::yarn,
               .factor = factor,
               .trained_positions = rope.number_or("original_max_position_embeddings", longest),
               .beta_fast = rope.number_or("beta_fast", 32),
               .beta_slow = rope.number_or("beta_slow", 1),
               .truncate = rope.flag_or("truncate", true),
               .attention_factor = rope.number_or("attention_factor", attention_factor)};
  } else if (type != "default") {
    rope.refuse(rope.has("rope_type") ? "rope_type" : "type", "default, linear, llama3 or yarn");
  }
  if (scaling.factor < 1) rope.refuse("factor", "a number from 1 on");
  if (scaling.kind != RotaryScalingKind::none && !(scaling.attention_factor > 0)) rope.refuse("attention_factor", "above 0");
  rope.refuse_unknown();
  return scaling;
}

void read_rotary(const ConfigFile& config, LlamaOptions& options) {
  options.rotary_base = config.number_or("rope_theta", 10000);
  const auto longest = static_cast<double>(options.block);
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!config.has(key)) continue;
    const ConfigFile rope(config, key);
    options.rotary_base = rope.number_or("rope_theta", options.rotary_base);
    options.rotary_scaling = scaling_of(rope, longest);
    break;
  }
  if (!(options.rotary_base > 1)) config.refuse("rope_theta", "a number above 1");
  config.ignore({"rope_scaling"});
}

// Qwen says by a flag whether there is a window at all, and from which layer on or in which ones.
void read_window(const ConfigFile& config, const std::string& family, LlamaOptions& options) {
  const bool has_flag = family == "qwen2" || family == "qwen3";
  const bool used = has_flag ? config.flag_or("use_sliding_window", false) : family == "mistral";
  config.ignore({"max_window_layers"});
  const std::int64_t window = config.integer_or("sliding_window", 0);
  const auto types = config.texts("layer_types");
  if (types && std::ssize(*types) != options.layers) config.refuse("layer_types", "one for each of num_hidden_layers");
  for (const std::string& type : types.value_or(std::vector<std::string>{})) {
    if (type != "full_attention" && type != "sliding_attention")
      config.refuse("layer_types", "full_attention, sliding_attention");
    options.windowed.push_back(type == "sliding_attention");
  }
  if (!types && used && has_flag) {
    const std::int64_t first = config.integer_or("max_window_layers", 28, 0);
    for (int layer = 0; layer < options.layers; ++layer) options.windowed.push_back(layer >= first);
  }
  if (!has_flag && std::ranges::count(options.windowed, true) % options.layers != 0) {
    config.refuse("layer_types", "layers that are all alike");
  }
  const bool somewhere = types ? std::ranges::count(options.windowed, true) > 0 : used && window > 0;
  if (!somewhere) {
    options.windowed.clear();
    return;
  }
  if (window == 0) config.refuse("sliding_window", "a whole number from 1 on");
  options.window = window;
  if (std::ranges::count(options.windowed, false) == 0) options.windowed.clear();
}

std::string family_of(const LlamaOptions& options) {
  if (options.query_key_norm) return "qwen3";
  if (options.attention_bias && !options.output_bias) return "qwen2";
  return options.window > 0 && options.windowed.empty() && !options.attention_bias ? "mistral" : "llama";
}

[[noreturn]] void refuse_to_save(const std::string& what) {
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("no model of transformers has {}", what),
               .hint = "save the weights by nn::save_weights()"});
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

nlohmann::ordered_json rope_json(const LlamaOptions& options) {
  const RotaryScaling& scaling = options.rotary_scaling;
  nlohmann::ordered_json rope{{"rope_theta", options.rotary_base}, {"rope_type", name_of_kind(scaling.kind)}};
  if (scaling.kind == RotaryScalingKind::none) return rope;
  rope["factor"] = scaling.factor;
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

std::string config_text(const LlamaOptions& options, DType dtype) {
  const std::string family = family_of(options);
  const bool is_qwen = family.starts_with("qwen");
  if (family != "llama" && options.mlp_bias) refuse_to_save("these biases of attention and MLP, norms or windows");
  if (family == "llama" && options.window > 0) refuse_to_save("a window and biases, or a window in some layers without biases");
  if (family == "llama" && options.attention_bias != options.output_bias) refuse_to_save("a bias of o_proj alone");
  if (family == "qwen3" && options.attention_bias != options.output_bias)
    refuse_to_save("norms of queries and one of these biases");
  const std::int64_t head_size = options.head_size == 0 ? options.width / options.heads : options.head_size;
  const std::string architecture = family == "llama"     ? "Llama"
                                   : family == "mistral" ? "Mistral"
                                   : family == "qwen2"   ? "Qwen2"
                                                         : "Qwen3";
  nlohmann::ordered_json config{{"architectures", {architecture + "ForCausalLM"}},
                                {"model_type", family},
                                {"dtype", std::string(name_of(dtype))},
                                {"vocab_size", options.vocabulary},
                                {"hidden_size", options.width},
                                {"intermediate_size", options.hidden},
                                {"num_hidden_layers", options.layers},
                                {"num_attention_heads", options.heads},
                                {"num_key_value_heads", options.kv_heads == 0 ? options.heads : options.kv_heads},
                                {"max_position_embeddings", options.block},
                                {"hidden_act", "silu"},
                                {"rms_norm_eps", options.epsilon},
                                {"initializer_range", options.weight_deviation},
                                {"tie_word_embeddings", options.tied},
                                {"rope_parameters", rope_json(options)}};
  if (family != "qwen2" || head_size * options.heads != options.width) config["head_dim"] = head_size;
  if (family == "llama" || family == "qwen3") config["attention_bias"] = options.attention_bias;
  if (family == "llama") config["mlp_bias"] = options.mlp_bias;
  if (is_qwen) config["use_sliding_window"] = options.window > 0;
  if (family != "llama") config["sliding_window"] = options.window > 0 ? nlohmann::ordered_json(options.window) : nullptr;
  if (is_qwen && options.window > 0) {
    for (int layer = 0; layer < options.layers; ++layer) {
      const bool windowed = options.windowed.empty() || options.windowed[static_cast<std::size_t>(layer)];
      config["layer_types"].push_back(windowed ? "sliding_attention" : "full_attention");
    }
  }
  return config.dump(2) + "\n";
}

bool is_beside(std::string_view name) { return name.ends_with(".rotary_emb.inv_freq"); }
bool is_beside_or_tied(std::string_view name) { return is_beside(name) || name == "lm_head.weight"; }

// Queries, keys and values are three tensors in the file.
nn::WeightsFormat format_of(const LlamaOptions& options, DType dtype) {
  const std::int64_t size = options.head_size == 0 ? options.width / options.heads : options.head_size;
  const std::array<std::pair<const char*, std::int64_t>, 3> projections{
      {{"q_proj", size * options.heads},
       {"k_proj", size * (options.kv_heads == 0 ? options.heads : options.kv_heads)},
       {"v_proj", size * (options.kv_heads == 0 ? options.heads : options.kv_heads)}}};
  return {.passed_over = options.tied ? is_beside_or_tied : is_beside,
          .parts =
              [projections](const std::string& parameter) {
                std::vector<nn::StoredRows> parts;
                constexpr std::string_view packed = "qkv_proj";
                const std::size_t place = parameter.find(packed);
                if (place == std::string::npos) return parts;
                for (const auto& [name, rows] : projections) {
                  std::string of_file = parameter;
                  parts.push_back({.name = of_file.replace(place, packed.size(), name), .count = rows});
                }
                return parts;
              },
          .dtype = dtype};
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (!failed) return;
  throw Error({.code = ErrorCode::io,
               .message = "the folder of a model can't be made: " + failed.message(),
               .path = folder.string(),
               .error_number = failed.value()});
}

// The files of a tokenizer that transformers may write.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to) {
  bool any = false;
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "vocab.json", "merges.txt",
        "vocab.txt", "added_tokens.json", "chat_template.jinja", "generation_config.json"}) {
    if (!std::filesystem::exists(from / name)) continue;
    any = true;
    std::error_code failed;
    std::filesystem::copy_file(from / name, to / name, std::filesystem::copy_options::overwrite_existing, failed);
    if (failed && !std::filesystem::equivalent(from / name, to / name)) {
      throw Error({.code = ErrorCode::io,
                   .message = "a file of the tokenizer can't be copied: " + failed.message(),
                   .path = (to / name).string()});
    }
  }
  require(any, "{} holds no file of a tokenizer", from.string());
}

}  // namespace

LlamaOptions llama_options(const std::filesystem::path& path) {
  const ConfigFile config(std::filesystem::is_directory(path) ? path / "config.json" : path);
  const std::string family = config.text("model_type");
  if (family != "llama" && family != "mistral" && family != "qwen2" && family != "qwen3") {
    config.refuse("model_type", "llama, mistral, qwen2 or qwen3");
  }
  constexpr std::int64_t most = 100'000;
  const auto count = [&](const char* key) {
    const std::int64_t value = config.integer(key);
    if (value > most) config.refuse(key, fmt::format("at most {}", most));
    return static_cast<int>(value);
  };
  LlamaOptions options{
      .layers = count("num_hidden_layers"),
      .heads = count("num_attention_heads"),
      .width = config.integer("hidden_size"),
      .hidden = config.integer("intermediate_size"),
      .vocabulary = config.integer("vocab_size", 2),
      .block = config.integer_or("max_position_embeddings", family == "qwen2" || family == "qwen3" ? 32768 : 2048),
      .epsilon = config.number_or("rms_norm_eps", 1e-6),
      .tied = config.flag_or("tie_word_embeddings", false),
      .weight_deviation = config.number_or("initializer_range", 0.02)};
  options.kv_heads = config.has("num_key_value_heads") ? count("num_key_value_heads") : options.heads;
  if (options.heads % options.kv_heads != 0) config.refuse("num_key_value_heads", "a divisor of num_attention_heads");
  options.head_size = config.integer_or("head_dim", family == "qwen3" ? 128 : 0, 2);
  if (options.head_size == 0 && options.width % options.heads != 0) {
    config.refuse("num_attention_heads", "a divisor of hidden_size, or a head_dim");
  }
  config.expect("hidden_act", "silu");
  config.expect("pretraining_tp", 1);
  config.expect("attention_dropout", 0.0);
  if (config.has("quantization_config")) config.refuse("quantization_config", "weights that are not quantized");
  options.query_key_norm = family == "qwen3";
  options.mlp_bias = family == "llama" && config.flag_or("mlp_bias", false);
  if (family == "llama" || family == "qwen3") {
    options.attention_bias = options.output_bias = config.flag_or("attention_bias", false);
  } else {
    options.attention_bias = family == "qwen2";
  }
  read_rotary(config, options);
  read_window(config, family, options);
  config.ignore({"architectures", "_name_or_path", "auto_map", "bos_token_id", "eos_token_id", "pad_token_id", "use_cache",
                 "torch_dtype", "dtype", "transformers_version", "sliding_window", "use_sliding_window", "id2label", "label2id",
                 "return_dict", "chunk_size_feed_forward", "problem_type", "_attn_implementation_autoset", "unsloth_version"});
  config.refuse_unknown();
  return options;
}

nn::LoadedWeights load_pretrained(Model& model, const LlamaOptions& options, const std::filesystem::path& folder,
                                  const nn::LoadOptions& load) {
  const std::vector<nn::PrefixedModel> models{{.prefix = "", .model = model}};
  const nn::WeightsFormat format = format_of(options, DType::float32);
  return model.store().dtype() == DType::float64 ? nn::load_weights<double>(models, folder.string(), format, load)
                                                 : nn::load_weights<float>(models, folder.string(), format, load);
}

void save_pretrained(Model& model, const LlamaOptions& options, const std::filesystem::path& folder,
                     const SavePretrainedOptions& save) {
  const std::string config = config_text(options, save.dtype);
  const std::vector<nn::PrefixedModel> models{{.prefix = "", .model = model}};
  const nn::WeightsFormat format = format_of(options, save.dtype);
  const auto is_first = [](const Axis& ranks) { return ranks == nullptr || ranks->rank() == 0; };
  const bool writes = is_first(model.context().pipeline) && is_first(model.context().tensor);
  // A rank that can't write still takes what the others give: none of them waits for it.
  std::exception_ptr failed;
  const auto attempt = [&failed](const auto& work) {
    try {
      work();
    } catch (...) {
      if (!failed) failed = std::current_exception();
    }
  };
  if (writes) attempt([&] { make_folder(folder); });
  attempt([&] {
    const std::string path = (folder / "model.safetensors").string();
    model.store().dtype() == DType::float64 ? nn::save_weights<double>(models, path, format)
                                            : nn::save_weights<float>(models, path, format);
  });
  if (writes && !failed) {
    attempt([&] {
      FileReplacement file(folder / "config.json");
      file.write(std::as_bytes(std::span(config)));
      file.commit();
      if (!save.tokenizer.empty()) copy_tokenizer(save.tokenizer, folder);
    });
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace trireme::models
