#include "models/model_config.hpp"

#include <fmt/format.h>

#include <system_error>

namespace trireme::models {

ConfigFile config_at(const std::filesystem::path& path) {
  std::error_code unknown;
  return ConfigFile(std::filesystem::is_directory(path, unknown) ? path / "config.json" : path);
}

ops::Activation activation_of(const ConfigFile& config, std::string_view key, ops::Activation otherwise) {
  if (!config.has(key)) return otherwise;
  const std::string name = config.text(key);
  if (name == "gelu") return ops::Activation::gelu_erf;
  if (name == "gelu_new" || name == "gelu_fast" || name == "gelu_pytorch_tanh") return ops::Activation::gelu_tanh;
  if (name == "relu") return ops::Activation::relu;
  if (name == "silu" || name == "swish") return ops::Activation::silu;
  config.refuse(key, "gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu or silu");
}

std::string name_of_activation(ops::Activation activation) {
  switch (activation) {
    case ops::Activation::gelu_erf: return "gelu";
    case ops::Activation::gelu_tanh: return "gelu_pytorch_tanh";
    case ops::Activation::relu: return "relu";
    case ops::Activation::silu: return "silu";
    case ops::Activation::sigmoid: return "sigmoid";
    case ops::Activation::tanh: break;
  }
  return "tanh";
}

double not_negative(const ConfigFile& config, std::string_view key, double otherwise) {
  const double value = config.number_or(key, otherwise);
  if (!(value >= 0)) config.refuse(key, "a number from 0 on");
  return value;
}

double probability_of(const ConfigFile& config, std::string_view key, double otherwise) {
  const double value = config.number_or(key, otherwise);
  if (!(value >= 0 && value < 1)) config.refuse(key, "a probability in [0, 1)");
  return value;
}

int count_of(const ConfigFile& config, std::string_view key, int otherwise) {
  constexpr std::int64_t most = 100'000;
  const std::int64_t value = otherwise == 0 ? config.integer(key) : config.integer_or(key, otherwise);
  if (value > most) config.refuse(key, fmt::format("at most {}", most));
  return static_cast<int>(value);
}

std::vector<std::string> labels_of(const ConfigFile& config) {
  config.ignore({"label2id"});
  if (!config.has("id2label")) return {};
  const ConfigFile names(config, "id2label");
  std::vector<std::string> labels;
  while (names.has(std::to_string(labels.size()))) labels.push_back(names.text(std::to_string(labels.size())));
  names.refuse_unknown();
  if (config.has("num_labels") && config.integer("num_labels", 0) != std::ssize(labels)) {
    config.refuse("num_labels", fmt::format("the {} of id2label", labels.size()));
  }
  return labels;
}

namespace {

std::string standard_label(std::size_t index) { return fmt::format("LABEL_{}", index); }

}  // namespace

bool are_standard(const std::vector<std::string>& labels) {
  for (std::size_t index = 0; index < labels.size(); ++index) {
    if (labels[index] != standard_label(index)) return false;
  }
  return true;
}

void add_labels(nlohmann::ordered_json& config, const std::vector<std::string>& labels, std::int64_t classes) {
  for (std::int64_t index = 0; index < classes; ++index) {
    const auto place = static_cast<std::size_t>(index);
    const std::string name = labels.empty() ? standard_label(place) : labels[place];
    config["id2label"][std::to_string(index)] = name;
    config["label2id"][name] = index;
  }
}

void ignore_what_computes_nothing(const ConfigFile& config) {
  config.ignore({"architectures",
                 "_name_or_path",
                 "_commit_hash",
                 "auto_map",
                 "bos_token_id",
                 "eos_token_id",
                 "pad_token_id",
                 "use_cache",
                 "torch_dtype",
                 "dtype",
                 "tokenizer_class",
                 "id2label",
                 "label2id",
                 "problem_type",
                 "finetuning_task",
                 "output_past",
                 "return_dict",
                 "chunk_size_feed_forward",
                 "temperature",
                 "top_k",
                 "top_p",
                 "do_sample",
                 "max_length",
                 "min_length",
                 "max_new_tokens",
                 "num_beams",
                 "repetition_penalty",
                 "is_llama_config",
                 "unsloth_version",
                 "transformers.js_config",
                 "transformers_version",
                 "_attn_implementation_autoset"});
}

}  // namespace trireme::models
