#pragma once

#include <string>

#include "fixtures.hpp"
#include "trireme/models/folders/adapter.hpp"
#include "trireme/models/folders/hugging_face.hpp"

namespace trireme::tests {

inline std::string type_of(const ModelFolder& folder) { return read_json(folder.path / "config.json").at("model_type"); }

// Calls use(model) with the model of a folder of PEFT, with its adapter unless context.lora says otherwise.
template <typename P>
void with_adapted(const ModelFolder& folder, ModelContext context, const auto& use) {
  if (!context.lora) context.lora = models::lora_options(folder.path);
  const auto load = [&](auto&& model) {
    models::load_pretrained(model, folder.path);
    models::load_adapter(model, folder.path);
    use(model);
  };
  const std::string type = type_of(folder);
  if (type == "gpt2") {
    load(models::Gpt<P>(models::gpt_options(folder.path), context));
  } else if (type == "gpt_neox") {
    load(models::GptNeoX<P>(models::gpt_neox_options(folder.path), context));
  } else {
    load(models::Llama<P>(models::llama_options(folder.path), context));
  }
}

inline Tensor<std::int32_t> windows_of(const ModelFolder& folder) {
  const SafetensorsFile file = folder.expected();
  return Tensor<std::int32_t>::from(file.at("tokens").shape, file.read_values<std::int32_t>("tokens"));
}

}  // namespace trireme::tests
