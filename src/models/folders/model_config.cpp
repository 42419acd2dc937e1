#include "models/folders/model_config.hpp"

#include <fmt/format.h>

namespace trireme::models {

ConfigFile config_at(const Location& path) { return ConfigFile(is_folder(path) ? path / "config.json" : path); }

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

bool is_tied(const ConfigFile& config, const Location& folder, const nn::RepeatedTensor& head, const char* prefix) {
  if (!config.flag_or("tie_word_embeddings", false)) return false;
  return !is_folder(folder) || !nn::repeats_differ(folder, {.optional_prefix = prefix, .repeated = {head}});
}

void refuse_the_rest(const ConfigFile& config) {
  if (config.has("quantization_config")) config.refuse("quantization_config", "weights that are not quantized");
  // The origin of the model and the program that wrote the folder, with its class names: model_type says what is computed.
  config.ignore({"architectures",
                 "_name_or_path",
                 "name_or_path",
                 "_commit_hash",
                 "auto_map",
                 "custom_pipeline",
                 "custom_pipelines",
                 "finetuning_task",
                 "task_specific_params",
                 "is_llama_config",
                 "keys_to_ignore_at_inference",
                 "language",
                 "name",
                 "num_steps",
                 "output_past",
                 "sbert_ce_default_activation_function",
                 "sentence_transformers",
                 "transformers_version",
                 "transformers.js_config",
                 "unsloth_fixed",
                 "unsloth_version"});
  // For tokenizers and texts: numbers of special tokens, and the length to which texts are cut. The number of positions has its
  // own keys.
  config.ignore({"bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "sep_token_id", "cls_token_id",
                 "mask_token_id", "decoder_start_token_id", "tokenizer_class", "prefix", "max_seq_len", "max_seq_length",
                 "max_sequence_length", "model_max_length", "tokenizer_model_max_length", "tokenizer_padding_side"});
  // How generate() of transformers continues a text.
  config.ignore({"bad_words_ids",
                 "begin_suppress_tokens",
                 "diversity_penalty",
                 "do_sample",
                 "early_stopping",
                 "encoder_no_repeat_ngram_size",
                 "exponential_decay_length_penalty",
                 "forced_bos_token_id",
                 "forced_eos_token_id",
                 "length_penalty",
                 "max_length",
                 "max_new_tokens",
                 "min_length",
                 "no_repeat_ngram_size",
                 "num_beam_groups",
                 "num_beams",
                 "num_return_sequences",
                 "output_scores",
                 "remove_invalid_values",
                 "repetition_penalty",
                 "return_dict_in_generate",
                 "suppress_tokens",
                 "temperature",
                 "top_k",
                 "top_p",
                 "typical_p"});
  // Labels of a classifier and the choice of its loss. The reader of a classifier has read them before.
  config.ignore({"id2label", "label2id", "num_labels", "_num_labels", "problem_type"});
  // How and in which type the same results are computed, kept and returned. pretraining_tp splits matrix products into parts.
  config.ignore({"dtype",
                 "torch_dtype",
                 "use_bfloat16",
                 "use_cache",
                 "gradient_checkpointing",
                 "chunk_size_feed_forward",
                 "pretraining_tp",
                 "return_dict",
                 "output_attentions",
                 "output_hidden_states",
                 "torchscript",
                 "tf_legacy_loss",
                 "xla_device",
                 "attn_implementation",
                 "_attn_implementation",
                 "_attn_implementation_autoset",
                 "_attn_implementation_internal",
                 "_flash_attn_2_enabled",
                 "use_flash_attn",
                 "use_flash_attention_2"});
  config.refuse_unknown();
}

}  // namespace trireme::models
