#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/data/images/image_dataset.hpp"
#include "trireme/data/images/read_image_folder.hpp"
#include "trireme/files/location.hpp"
#include "trireme/models/architectures/bert.hpp"
#include "trireme/models/architectures/gpt_neox.hpp"
#include "trireme/models/architectures/llama.hpp"
#include "trireme/models/architectures/vision_transformer.hpp"
#include "trireme/models/folders/gpt2_safetensors.hpp"
#include "trireme/models/folders/load_pretrained.hpp"
#include "trireme/nn/weights/weights.hpp"

// Folders of a model as Hugging Face transformers writes and reads them. A folder has a config.json, and the weights in
// model.safetensors or in the shards that model.safetensors.index.json names.
//
//   models::Llama<Float32> model(models::llama_options("Llama-3.2-1B"));
//   models::load_pretrained(model, "Llama-3.2-1B");
//   ...
//   models::save_pretrained(model, "tuned", {.dtype = DType::bfloat16, .from = "Llama-3.2-1B"});
namespace trireme TRIREME_EXPORT {
namespace models {

// The model_type in a folder's config.json: llama, gpt2, bert, ... path: the folder, or the file itself.
std::string model_type(const Location& path);

enum class Family : std::uint8_t {
  llama,     // model_type llama, mistral, mixtral, qwen2, qwen2_moe, qwen3 or qwen3_moe
  gpt2,      // gpt2
  gpt_neox,  // gpt_neox
  bert,      // bert
  vit        // vit or deit
};

// The family of a folder's model_type. `refused` maps families that the caller does not accept to advice for the Error. Any
// other model_type is an Error that lists the accepted types.
//
//   switch (models::family_of("folder", {{models::Family::vit, "train_vit trains vision transformers"}})) {
Family family_of(const Location& path, const std::map<Family, std::string>& refused = {});

// Reads the config.json of a model of the family llama. path: the folder, or the file itself. A feature that Llama does not
// support (another activation or kind of rotary positions, quantized weights, an unknown option) is an Error that names it.
LlamaOptions llama_options(const Location& path);

// Reads the config.json of the family vit: a ViTForImageClassification, or a DeiTForImageClassificationWithTeacher, which has a
// distillation token.
VisionTransformerOptions vit_options(const Location& path);

// Reads from a folder's preprocessor_config.json how images are normalised for the model; empty if there is no such file. A
// file that does not divide pixels by 255 is an Error.
std::optional<data::Normalization> image_normalization(const Location& folder);

// Reads from preprocessor_config.json how images are resized. Then the centre of `image_size` x `image_size` pixels, the
// model's size, is cut out. A crop to another size or an unsupported way to resize is an Error. Without the file, images are
// resized to the model's size by bilinear interpolation.
data::Resizing image_resizing(const Location& folder, std::int64_t image_size);

// Reads the config.json of the family bert, with classes if the architecture is BertForSequenceClassification.
BertOptions bert_options(const Location& path);

// Read the config.json of the families gpt2 and gpt_neox.
GptOptions gpt_options(const Location& path);
GptNeoXOptions gpt_neox_options(const Location& path);

// See load_pretrained.hpp; for a Gpt see gpt2_safetensors.hpp.
nn::LoadedWeights load_pretrained(Model& model, const LlamaOptions& options, const Location& path,
                                  const nn::LoadOptions& load = {});
nn::LoadedWeights load_pretrained(Model& model, const VisionTransformerOptions& options, const Location& path,
                                  const nn::LoadOptions& load = {});
nn::LoadedWeights load_pretrained(Model& model, const BertOptions& options, const Location& path,
                                  const nn::LoadOptions& load = {});
nn::LoadedWeights load_pretrained(Model& model, const GptNeoXOptions& options, const Location& path,
                                  const nn::LoadOptions& load = {});

struct SavePretrainedOptions {
  DType dtype = DType::float32;  // of the weights in the file: also bfloat16 or float16; too large a value is an Error
  // The folder that the model came from. Its tokenizer or image processor files, and its token numbers such as bos_token_id,
  // are copied if the folder has any. Empty: none.
  Location from = {};
  // A folder, or a file in it, with the tokenizer to copy. Not given: the tokenizer of `from`; an empty Location: none.
  std::optional<Location> tokenizer = {};
  // Content of chat_template.jinja, as tokenizers::ChatTemplate::jinja() returns it. Empty: the template in the tokenizer's
  // folder, if the folder has a template.
  std::string chat_template = {};
  // For a vision transformer: the normalisation of its images, for preprocessor_config.json if `from` has no such file.
  std::optional<data::Normalization> normalization = {};
  // False: writes all files but the weights, as the description of a model whose weights are in checkpoints.
  bool weights = true;
};

// Writes config.json and model.safetensors, which Hugging Face transformers 4 and 5 load strictly. A feature that no model of
// Hugging Face transformers has is an Error. All ranks of a divided model call save_pretrained(); the first rank writes.
// Creates the folder if it does not exist.
void save_pretrained(Model& model, const LlamaOptions& options, const Location& folder, const SavePretrainedOptions& save = {});
void save_pretrained(Model& model, const VisionTransformerOptions& options, const Location& folder,
                     const SavePretrainedOptions& save = {});
void save_pretrained(Model& model, const BertOptions& options, const Location& folder, const SavePretrainedOptions& save = {});
void save_pretrained(Model& model, const GptOptions& options, const Location& folder, const SavePretrainedOptions& save = {});
void save_pretrained(Model& model, const GptNeoXOptions& options, const Location& folder,
                     const SavePretrainedOptions& save = {});
template <typename Net>
requires requires(const Net& model) { model.options(); }
void save_pretrained(const Net& model, const Location& folder, const SavePretrainedOptions& save = {}) {
  save_pretrained(model.model(), model.options(), folder, save);
}

}  // namespace models
}  // namespace trireme
