#include "models/folders/gpt2_format.hpp"
#include "models/folders/model_config.hpp"
#include "models/folders/pretrained_folder.hpp"
#include "trireme/models/folders/hugging_face.hpp"

namespace trireme::models {
namespace {

// Tensors of older versions that are not parameters: masks and rotary frequencies.
bool is_beside_neox(std::string_view name) {
  return name.ends_with(".attention.bias") || name.ends_with(".attention.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

constexpr const char* neox_prefix = "gpt_neox.";  // missing in a GPTNeoXModel

// The output layer of a tied model.
nn::RepeatedTensor neox_head() { return {.name = "embed_out.weight", .of = "gpt_neox.embed_in.weight"}; }

nn::WeightsFormat format_of(const GptNeoXOptions& options, DType dtype) {
  return {.passed_over = is_beside_neox,
          .optional_prefix = neox_prefix,
          .repeated = options.tied ? std::vector{neox_head()} : std::vector<nn::RepeatedTensor>{},
          .dtype = dtype};
}

// Reads "rope_parameters" of transformers 5, or rotary_emb_base and rotary_pct of the first versions.
void read_rotary(const ConfigFile& config, GptNeoXOptions& options) {
  options.rotary_base = config.number_or("rotary_emb_base", 10000);
  options.rotary_share = config.number_or("rotary_pct", 0.25);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!config.has(key)) continue;
    const ConfigFile rope(config, key);
    rope.expect("rope_type", "default");
    rope.expect("type", "default");
    options.rotary_base = rope.number_or("rope_theta", options.rotary_base);
    options.rotary_share = rope.number_or("partial_rotary_factor", options.rotary_share);
    rope.refuse_unknown();
  }
  if (!(options.rotary_base > 1)) config.refuse("rotary_emb_base", "a number above 1");
  if (!(options.rotary_share >= 0 && options.rotary_share <= 1)) config.refuse("rotary_pct", "a share from 0 to 1");
}

}  // namespace

GptOptions gpt_options(const Location& path) {
  const ConfigFile config = config_at(path);
  require_family(config, Family::gpt2);
  GptOptions options{.layers = count_of(config, "n_layer", 12),
                     .heads = count_of(config, "n_head", 12),
                     .width = config.integer_or("n_embd", 768),
                     .block = config.integer_or("n_positions", 1024),
                     .vocabulary = config.integer_or("vocab_size", 50257, 2),
                     .dropout = probability_of(config, "resid_pdrop", 0.1),
                     .attention_dropout = probability_of(config, "attn_pdrop", 0.1),
                     .weight_deviation = not_negative(config, "initializer_range", 0.02)};
  const double of_embedding = probability_of(config, "embd_pdrop", 0.1);
  if (of_embedding != options.dropout) options.embedding_dropout = of_embedding;
  if (options.width % options.heads != 0) config.refuse("n_head", "a divisor of n_embd");
  if (config.integer_or("n_inner", 4 * options.width) != 4 * options.width) config.refuse("n_inner", "null, or 4 * n_embd");
  if (activation_of(config, "activation_function", ops::Activation::gelu_tanh) != ops::Activation::gelu_tanh) {
    config.refuse("activation_function", "gelu_new");
  }
  config.expect("layer_norm_epsilon", 1e-5);
  config.expect("scale_attn_weights", true);
  config.expect("scale_attn_by_inverse_layer_idx", false);
  config.expect("add_cross_attention", false);
  config.expect("tie_word_embeddings", true);
  // Keys of a multiple-choice head, of GPT-1, and of the order in which attention computes the same result.
  config.ignore({"reorder_and_upcast_attn", "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
                 "summary_type", "summary_use_proj", "n_ctx", "n_special", "predict_special_tokens"});
  refuse_the_rest(config);
  return options;
}

void save_pretrained(Model& model, const GptOptions& options, const Location& folder, const SavePretrainedOptions& save) {
  nlohmann::ordered_json config{{"architectures", {"GPT2LMHeadModel"}},
                                {"model_type", "gpt2"},
                                {"dtype", std::string(name_of(save.dtype))},
                                {"vocab_size", options.vocabulary},
                                {"n_positions", options.block},
                                {"n_embd", options.width},
                                {"n_layer", options.layers},
                                {"n_head", options.heads},
                                {"activation_function", "gelu_new"},
                                {"resid_pdrop", options.dropout},
                                {"embd_pdrop", options.embedding_dropout.value_or(options.dropout)},
                                {"attn_pdrop", options.attention_dropout},
                                {"layer_norm_epsilon", 1e-5},
                                {"initializer_range", options.weight_deviation},
                                {"tie_word_embeddings", true},
                                {"bos_token_id", nullptr},
                                {"eos_token_id", nullptr},
                                {"pad_token_id", nullptr}};
  save_folder(model, std::move(config), gpt2_format(save.dtype), folder, save);
}

GptNeoXOptions gpt_neox_options(const Location& path) {
  const ConfigFile config = config_at(path);
  require_family(config, Family::gpt_neox);
  GptNeoXOptions options{.layers = count_of(config, "num_hidden_layers", 44),
                         .heads = count_of(config, "num_attention_heads", 64),
                         .width = config.integer_or("hidden_size", 6144),
                         .hidden = config.integer_or("intermediate_size", 24576),
                         .vocabulary = config.integer_or("vocab_size", 50432, 2),
                         .block = config.integer_or("max_position_embeddings", 2048),
                         .activation = activation_of(config, "hidden_act", ops::Activation::gelu_erf),
                         .epsilon = not_negative(config, "layer_norm_eps", 1e-5),
                         .parallel_residual = config.flag_or("use_parallel_residual", true),
                         .attention_bias = config.flag_or("attention_bias", true),
                         .tied = is_tied(config, path, neox_head(), neox_prefix),
                         .unused_attention_dropout = probability_of(config, "attention_dropout", 0),
                         .unused_hidden_dropout = probability_of(config, "hidden_dropout", 0),
                         .weight_deviation = not_negative(config, "initializer_range", 0.02)};
  if (options.width % options.heads != 0) config.refuse("num_attention_heads", "a divisor of hidden_size");
  read_rotary(config, options);
  config.expect("rope_theta", options.rotary_base);  // some versions write it besides rotary_emb_base
  config.expect("partial_rotary_factor", options.rotary_share);
  // Dropout keys that no GPT-NeoX of transformers reads, or that belong to a classifier.
  config.ignore({"classifier_dropout", "attention_probs_dropout_prob", "hidden_dropout_prob"});
  refuse_the_rest(config);
  return options;
}

nn::LoadedWeights load_pretrained(Model& model, const GptNeoXOptions& options, const Location& path,
                                  const nn::LoadOptions& load) {
  return nn::load_weights({{.prefix = "", .model = model}}, path, format_of(options, DType::float32), load);
}

// All versions of transformers can read it: the first ones read rotary_pct and rotary_emb_base.
void save_pretrained(Model& model, const GptNeoXOptions& options, const Location& folder, const SavePretrainedOptions& save) {
  nlohmann::ordered_json config{{"architectures", {"GPTNeoXForCausalLM"}},
                                {"model_type", "gpt_neox"},
                                {"dtype", std::string(name_of(save.dtype))},
                                {"vocab_size", options.vocabulary},
                                {"hidden_size", options.width},
                                {"intermediate_size", options.hidden},
                                {"num_hidden_layers", options.layers},
                                {"num_attention_heads", options.heads},
                                {"max_position_embeddings", options.block},
                                {"hidden_act", name_of_activation(options.activation)},
                                {"layer_norm_eps", options.epsilon},
                                {"initializer_range", options.weight_deviation},
                                {"attention_dropout", options.unused_attention_dropout},
                                {"hidden_dropout", options.unused_hidden_dropout},
                                {"use_parallel_residual", options.parallel_residual},
                                {"attention_bias", options.attention_bias},
                                {"tie_word_embeddings", options.tied},
                                {"rotary_pct", options.rotary_share},
                                {"rotary_emb_base", options.rotary_base},
                                {"bos_token_id", nullptr},
                                {"eos_token_id", nullptr},
                                {"pad_token_id", nullptr}};
  save_folder(model, std::move(config), format_of(options, save.dtype), folder, save);
}

}  // namespace trireme::models
