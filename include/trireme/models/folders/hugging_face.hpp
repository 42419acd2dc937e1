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

// Folders of a model as Hugging Face's transformers writes and reads them: config.json, and the weights in model.safetensors or
// in the shards that model.safetensors.index.json names.
//
//   models::Llama<Float32> model(models::llama_options("Llama-3.2-1B"));
//   models::load_pretrained(model, "Llama-3.2-1B");
//   ...
//   models::save_pretrained(model, "tuned", {.dtype = DType::bfloat16, .from = "Llama-3.2-1B"});
namespace trireme TRIREME_EXPORT {
namespace models {

// model_type of a folder's config.json, or of the file that is named: llama, gpt2, bert, ...
std::string model_type(const Location& path);

enum class Family : std::uint8_t {
  llama,     // model_type llama, mistral, mixtral, qwen2, qwen2_moe, qwen3 or qwen3_moe
  gpt2,      // gpt2
  gpt_neox,  // gpt_neox
  bert,      // bert
  vit        // vit or deit
};

// Which one a folder's model_type is of. `refused` says of families that are not taken what to do with them. Any other
// model_type is an Error that lists those that are taken.
//
//   switch (models::family_of("folder", {{models::Family::vit, "train_vit trains vision transformers"}})) {
Family family_of(const Location& path, const std::map<Family, std::string>& refused = {});

// What a folder's config.json says, or the file that is named, of the family llama. What it asks for and no Llama has (another
// activation or kind of rotary positions, quantized weights, an option of an unknown name) is an Error that names it.
LlamaOptions llama_options(const Location& path);

// The same of the family vit: a ViTForImageClassification, or a DeiTForImageClassificationWithTeacher, which has a distillation
// token.
VisionTransformerOptions vit_options(const Location& path);

// How images are normalised for the model of a folder, by its preprocessor_config.json; empty: it has no such file. Pixels that
// are not divided by 255 there are an Error.
std::optional<data::Normalization> image_normalization(const Location& folder);

// How images of any size become those of a model, which are `image_size` pixels high and wide, by the same file. Another size
// that it asks for, or another way to resize, is an Error. Without the file they are resized to the model's, bilinear.
data::Resizing image_resizing(const Location& folder, std::int64_t image_size);

// The same of the family bert: with classes where the architecture is BertForSequenceClassification.
BertOptions bert_options(const Location& path);

// The same of the families gpt2 and gpt_neox.
GptOptions gpt_options(const Location& path);
GptNeoXOptions gpt_neox_options(const Location& path);

// See load_pretrained.hpp; of a Gpt gpt2_safetensors.hpp.
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
  // The folder that the model came from: the files of its tokenizer or image processor and the numbers of special tokens are
  // carried along, as far as it has any. Empty: none.
  Location from = {};
  // A folder, or a file of it, whose tokenizer goes along in place of that of `from`. Empty: none.
  std::optional<Location> tokenizer = {};
  // How conversations become texts, as tokenizers::ChatTemplate::jinja() gives it: for chat_template.jinja, in place of that of
  // the folder. Empty: that one, if there is any.
  std::string chat_template = {};
  // Of a vision transformer: what its images were normalised by, for a preprocessor_config.json where `from` has none.
  std::optional<data::Normalization> normalization = {};
  // False: the folder gets all but the weights, and says which model those in checkpoints are of.
  bool weights = true;
};

// Writes config.json and model.safetensors, which transformers (4 and 5) loads strictly. What no model of transformers has is
// an Error. All ranks of a divided model call it; the first one writes. The folder is made where there is none.
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
