#pragma once

#include <string>

#include "trireme/autograd/lora_options.hpp"
#include "trireme/autograd/model.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"

// Folders of LoRA adapters as Hugging Face's PEFT writes and reads them, with adapter_config.json and
// adapter_model.safetensors. The functions work for Llama, Gpt and GptNeoX, because their layers have the names of Hugging
// Face transformers.
//
//   ModelContext context;
//   context.lora = LoraOptions{.rank = 8, .alpha = 16, .targets = {"q_proj", "v_proj"}};
//   models::Llama<Float32> model(models::llama_options("Llama-3.2-1B"), context);
//   models::load_pretrained(model, "Llama-3.2-1B");
//   ...
//   models::save_adapter(model, "adapter", {.base_model = "Llama-3.2-1B"});
//   models::save_pretrained(model, "tuned");  // the merged weights, as a model of Hugging Face transformers
namespace trireme TRIREME_EXPORT {
namespace models {

// Reads a folder's adapter_config.json. Another kind of adapter, or a feature that is not supported (DoRA, trained biases or
// modules, ranks by layer, an unknown option), is an Error that names it.
LoraOptions lora_options(const Location& folder);

// Loads the adapters of a model made with lora_options(folder), or with other options of the same rank, scale and targets. Call
// it after load_pretrained(), which initializes the adapters again.
void load_adapter(Model& model, const Location& folder);

struct SaveAdapterOptions {
  DType dtype = DType::float32;  // of the file: also bfloat16 or float16
  std::string base_model = {};   // name or folder of the model that was adapted, for PEFT
  std::string task_type = "CAUSAL_LM";
};

// All ranks of a divided model call save_adapter(); the first rank writes. Creates the folder if it does not exist.
void save_adapter(Model& model, const Location& folder, const SaveAdapterOptions& options = {});

}  // namespace models
}  // namespace trireme
