#include <array>

#include "models/folders/encoder_format.hpp"
#include "models/folders/model_config.hpp"
#include "models/folders/pretrained_folder.hpp"
#include "trireme/models/folders/hugging_face.hpp"

namespace trireme::models {
namespace {

constexpr EncoderNames names_in_bert{.query_key_value = "attention.self.",
                                     .out_proj = "attention.output.dense",
                                     .norm1 = "attention.output.LayerNorm",
                                     .norm2 = "output.LayerNorm"};

// Tensors in files that are not parameters: position ids of older versions, and the next-sentence head.
bool is_beside_bert(std::string_view name) {
  return name == "bert.embeddings.position_ids" || name.starts_with("cls.seq_relationship.");
}
// Only the classifier has the pooler. Only the masked-language head has the decoder, which is the token embedding.
bool is_beside_masked_bert(std::string_view name) { return is_beside_bert(name) || name.starts_with("bert.pooler."); }
bool is_beside_classifier(std::string_view name) {
  return is_beside_bert(name) || name.starts_with("cls.predictions.decoder.");
}

// The first BERTs called weight and bias of norms gamma and beta.
std::string older_name(std::string_view name) {
  for (const auto& [now, before] :
       {std::pair("LayerNorm.weight", "LayerNorm.gamma"), std::pair("LayerNorm.bias", "LayerNorm.beta")}) {
    const std::string_view ending = now;
    if (name.ends_with(ending)) return std::string(name.substr(0, name.size() - ending.size())) + before;
  }
  return std::string(name);
}

nn::WeightsFormat format_of(const BertOptions& options, DType dtype) {
  std::vector<nn::RepeatedTensor> repeated;
  if (options.classes == 0) {
    repeated = {{.name = "cls.predictions.decoder.weight", .of = "bert.embeddings.word_embeddings.weight"},
                {.name = "cls.predictions.decoder.bias", .of = "cls.predictions.bias"}};
  }
  return {.passed_over = options.classes > 0 ? is_beside_classifier : is_beside_masked_bert,
          .optional_prefix = "bert.",  // missing in a BertModel
          .older_name = older_name,
          .repeated = std::move(repeated),
          .parts = [width = options.width](const std::string& parameter) -> std::vector<nn::StoredRows> {
            const std::array<std::pair<std::string_view, std::string_view>, 3> modules{
                {{"classification.pooler.", "bert.pooler.dense."},
                 {"classification.classifier.", "classifier."},
                 {"cls.predictions.decoder.", "cls.predictions."}}};
            for (const auto& [module, in_file] : modules) {
              if (parameter.starts_with(module)) return {{.name = std::string(in_file) + parameter.substr(module.size())}};
            }
            return encoder_parts(parameter, "bert.encoder.layer.", names_in_bert, width);
          },
          .dtype = dtype};
}

}  // namespace

BertOptions bert_options(const Location& path) {
  const ConfigFile config = config_at(path);
  require_family(config, Family::bert);
  BertOptions options{.layers = count_of(config, "num_hidden_layers", 12),
                      .heads = count_of(config, "num_attention_heads", 12),
                      .width = config.integer_or("hidden_size", 768),
                      .hidden = config.integer_or("intermediate_size", 3072),
                      .vocabulary = config.integer_or("vocab_size", 30522, 2),
                      .block = config.integer_or("max_position_embeddings", 512),
                      .token_types = config.integer_or("type_vocab_size", 2),
                      .activation = activation_of(config, "hidden_act", ops::Activation::gelu_erf),
                      .epsilon = not_negative(config, "layer_norm_eps", 1e-12),
                      .dropout = probability_of(config, "hidden_dropout_prob", 0.1),
                      .attention_dropout = probability_of(config, "attention_probs_dropout_prob", 0.1),
                      .weight_deviation = not_negative(config, "initializer_range", 0.02)};
  if (options.width % options.heads != 0) config.refuse("num_attention_heads", "a divisor of hidden_size");
  const auto architectures = config.texts("architectures").value_or(std::vector<std::string>{});
  if (architectures == std::vector<std::string>{"BertForSequenceClassification"}) {
    options.labels = labels_of(config);
    options.classes = options.labels.empty() ? config.integer_or("num_labels", 2) : std::ssize(options.labels);
    if (are_standard(options.labels)) options.labels.clear();
    if (options.classes < 2) config.refuse("id2label", "2 classes or more");
  }
  config.expect("problem_type", "single_label_classification");
  if (config.has("classifier_dropout")) options.classifier_dropout = probability_of(config, "classifier_dropout", 0);
  config.expect("tie_word_embeddings", true);
  config.expect("position_embedding_type", "absolute");
  config.ignore({"pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type",
                 "directionality"});  // of the first BERTs; transformers does not read them
  refuse_the_rest(config);
  return options;
}

nn::LoadedWeights load_pretrained(Model& model, const BertOptions& options, const Location& path, const nn::LoadOptions& load) {
  return nn::load_weights({{.prefix = "", .model = model}}, path, format_of(options, DType::float32), load);
}

void save_pretrained(Model& model, const BertOptions& options, const Location& folder, const SavePretrainedOptions& save) {
  nlohmann::ordered_json config{{"architectures", {options.classes > 0 ? "BertForSequenceClassification" : "BertForMaskedLM"}},
                                {"model_type", "bert"},
                                {"dtype", std::string(name_of(save.dtype))},
                                {"vocab_size", options.vocabulary},
                                {"hidden_size", options.width},
                                {"intermediate_size", options.hidden},
                                {"num_hidden_layers", options.layers},
                                {"num_attention_heads", options.heads},
                                {"max_position_embeddings", options.block},
                                {"type_vocab_size", options.token_types},
                                {"hidden_act", name_of_activation(options.activation)},
                                {"hidden_dropout_prob", options.dropout},
                                {"attention_probs_dropout_prob", options.attention_dropout},
                                {"layer_norm_eps", options.epsilon},
                                {"initializer_range", options.weight_deviation},
                                {"tie_word_embeddings", true},
                                {"pad_token_id", 0}};
  if (options.classifier_dropout) config["classifier_dropout"] = *options.classifier_dropout;
  if (options.classes > 0) add_labels(config, options.labels, options.classes);
  save_folder(model, std::move(config), format_of(options, save.dtype), folder, save);
}

}  // namespace trireme::models
