#include <fmt/format.h>

#include <cmath>

#include "models/folders/encoder_format.hpp"
#include "models/folders/model_config.hpp"
#include "models/folders/pretrained_folder.hpp"
#include "trireme/models/folders/hugging_face.hpp"

namespace trireme::models {
namespace {

constexpr EncoderNames names_in_vit{.query_key_value = "attention.attention.",
                                    .out_proj = "attention.output.dense",
                                    .norm1 = "layernorm_before",
                                    .norm2 = "layernorm_after"};

nn::WeightsFormat format_of(const VisionTransformerOptions& options, DType dtype) {
  return {.optional_prefix = options.distilled ? "deit." : "vit.",  // missing in a ViTModel
          .parts =
              [width = options.width, distilled = options.distilled](const std::string& parameter) {
                auto parts = encoder_parts(parameter, "vit.encoder.layer.", names_in_vit, width);
                if (!distilled) return parts;
                if (parts.empty()) parts.push_back({.name = parameter});
                for (nn::StoredRows& part : parts) {
                  if (part.name.starts_with("vit.")) part.name = "deit." + part.name.substr(4);
                }
                return parts;
              },
          .dtype = dtype};
}

// A config with which transformers' ViT processor does what read_image_folder() does; null if no normalization is known.
nlohmann::ordered_json image_processor(const VisionTransformerOptions& options,
                                       const std::optional<data::Normalization>& normalization) {
  if (!normalization) return nullptr;
  constexpr int bilinear = 2;
  nlohmann::ordered_json processor{{"image_processor_type", "ViTImageProcessor"},
                                   {"do_resize", true},
                                   {"size", {{"height", options.image_size}, {"width", options.image_size}}},
                                   {"resample", bilinear},
                                   {"do_rescale", true},
                                   {"rescale_factor", 1.0 / 255},
                                   {"do_normalize", !normalization->mean.empty()}};
  if (normalization->mean.empty()) return processor;
  processor["image_mean"] = normalization->mean;
  processor["image_std"] = normalization->std;
  return processor;
}

// The config of a folder's image processor, if it has one.
std::optional<ConfigFile> processor_of(const Location& folder) {
  const Location file = folder / "preprocessor_config.json";
  if (!is_there(file)) return std::nullopt;
  return ConfigFile(file, "the config of an image processor");
}

// A single number is the side of a square.
data::Resizing extents_of(const ConfigFile& processor, const char* key, std::int64_t otherwise) {
  const nlohmann::json* value = processor.value(key);
  if (value == nullptr || !value->is_object()) {
    const std::int64_t side = processor.integer_or(key, otherwise);
    return {.height = side, .width = side};
  }
  const ConfigFile extents(processor, key);
  if (extents.has("shortest_edge") && !extents.has("longest_edge")) return {.shorter = extents.integer("shortest_edge")};
  return {.height = extents.integer("height"), .width = extents.integer("width")};
}

}  // namespace

VisionTransformerOptions vit_options(const Location& path) {
  const ConfigFile config = config_at(path);
  require_family(config, Family::vit);
  const auto architectures = config.texts("architectures");
  const bool distilled = config.text("model_type") == "deit";
  if (distilled && architectures && *architectures != std::vector<std::string>{"DeiTForImageClassificationWithTeacher"}) {
    config.refuse("architectures", "DeiTForImageClassificationWithTeacher, whose logits are those of both of its tokens");
  }
  VisionTransformerOptions options{.layers = count_of(config, "num_hidden_layers", 12),
                                   .heads = count_of(config, "num_attention_heads", 12),
                                   .width = config.integer_or("hidden_size", 768),
                                   .hidden = config.integer_or("intermediate_size", 3072),
                                   .image_size = config.integer_or("image_size", 224),
                                   .patch_size = config.integer_or("patch_size", 16),
                                   .channels = config.integer_or("num_channels", 3),
                                   .activation = activation_of(config, "hidden_act", ops::Activation::gelu_erf),
                                   .epsilon = not_negative(config, "layer_norm_eps", 1e-12),
                                   .dropout = probability_of(config, "hidden_dropout_prob", 0),
                                   .attention_dropout = probability_of(config, "attention_probs_dropout_prob", 0),
                                   .distilled = distilled,
                                   .labels = labels_of(config),
                                   .weight_deviation = not_negative(config, "initializer_range", 0.02)};
  options.classes = options.labels.empty() ? config.integer_or("num_labels", 2) : std::ssize(options.labels);
  if (are_standard(options.labels)) options.labels.clear();
  if (options.classes < 2) config.refuse("id2label", "2 classes or more");
  config.expect("problem_type", "single_label_classification");
  constexpr std::int64_t largest = 1 << 16;
  if (options.image_size > largest) config.refuse("image_size", fmt::format("at most {}", largest));
  if (options.width % options.heads != 0) config.refuse("num_attention_heads", "a divisor of hidden_size");
  if (options.image_size % options.patch_size != 0) config.refuse("patch_size", "a divisor of image_size");
  config.expect("qkv_bias", true);
  config.ignore({"encoder_stride", "pooler_act", "pooler_output_size"});  // of parts that a classifier does not have
  refuse_the_rest(config);
  return options;
}

std::optional<data::Normalization> image_normalization(const Location& folder) {
  const std::optional<ConfigFile> processor = processor_of(folder);
  if (!processor) return std::nullopt;
  const ConfigFile& config = *processor;
  if (!config.flag_or("do_rescale", true)) config.refuse("do_rescale", "true");
  if (std::abs(config.number_or("rescale_factor", 1.0 / 255) * 255 - 1) > 1e-6) config.refuse("rescale_factor", "1 / 255");
  if (!config.flag_or("do_normalize", true)) return data::Normalization();
  const auto as_floats = [&config](const char* key) {
    const std::vector<double> numbers = config.numbers(key);
    return std::vector<float>(numbers.begin(), numbers.end());
  };
  return data::Normalization{.mean = as_floats("image_mean"), .std = as_floats("image_std")};
}

data::Resizing image_resizing(const Location& folder, std::int64_t image_size) {
  const std::optional<ConfigFile> processor = processor_of(folder);
  if (!processor) return {};
  const ConfigFile& config = *processor;
  // Missing keys have the defaults of transformers' processor of this kind.
  const std::string kind = config.text_or("image_processor_type", config.text_or("feature_extractor_type", ""));
  const bool of_deit = kind.starts_with("DeiT");
  if (!config.flag_or("do_resize", true)) config.refuse("do_resize", "true");
  data::Resizing resizing = extents_of(config, "size", of_deit ? 256 : image_size);
  constexpr int bilinear = 2, bicubic = 3;
  const std::int64_t resample = config.integer_or("resample", of_deit ? bicubic : bilinear, 0);
  if (resample != bilinear && resample != bicubic) config.refuse("resample", "2 or 3, bilinear or bicubic");
  if (resample == bicubic) resizing.resampling = data::Resampling::bicubic;
  const bool crops = config.flag_or("do_center_crop", of_deit);
  const data::Resizing taken = crops ? extents_of(config, "crop_size", of_deit ? 224 : image_size) : resizing;
  if (taken.shorter > 0 || taken.height != image_size || taken.width != image_size) {
    config.refuse(crops ? "crop_size" : "size", fmt::format("{}, the pixels of the model's images", image_size));
  }
  const bool is_smaller =
      resizing.shorter > 0 ? resizing.shorter < image_size : resizing.height < image_size || resizing.width < image_size;
  if (is_smaller) config.refuse("size", "no less than crop_size");
  return resizing;
}

nn::LoadedWeights load_pretrained(Model& model, const VisionTransformerOptions& options, const Location& path,
                                  const nn::LoadOptions& load) {
  return nn::load_weights({{.prefix = "", .model = model}}, path, format_of(options, DType::float32), load);
}

void save_pretrained(Model& model, const VisionTransformerOptions& options, const Location& folder,
                     const SavePretrainedOptions& save) {
  const char* architecture = options.distilled ? "DeiTForImageClassificationWithTeacher" : "ViTForImageClassification";
  nlohmann::ordered_json config{{"architectures", {architecture}},
                                {"model_type", options.distilled ? "deit" : "vit"},
                                {"dtype", std::string(name_of(save.dtype))},
                                {"image_size", options.image_size},
                                {"patch_size", options.patch_size},
                                {"num_channels", options.channels},
                                {"hidden_size", options.width},
                                {"intermediate_size", options.hidden},
                                {"num_hidden_layers", options.layers},
                                {"num_attention_heads", options.heads},
                                {"hidden_act", name_of_activation(options.activation)},
                                {"hidden_dropout_prob", options.dropout},
                                {"attention_probs_dropout_prob", options.attention_dropout},
                                {"layer_norm_eps", options.epsilon},
                                {"initializer_range", options.weight_deviation},
                                {"qkv_bias", true}};
  add_labels(config, options.labels, options.classes);
  save_folder(model, std::move(config), format_of(options, save.dtype), folder, save,
              image_processor(options, save.normalization));
}

}  // namespace trireme::models
