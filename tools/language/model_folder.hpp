#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trireme/models/hugging_face.hpp"

// A folder of transformers, as far as a program has to know which model it holds.
struct ModelFolder {
  std::filesystem::path path;
  std::string type;                     // model_type of config.json
  std::vector<std::int32_t> stop = {};  // eos_token_id of generation_config.json, or of config.json
};
ModelFolder read_model_folder(const std::filesystem::path& path);

// Calls body(model) with the folder's model.
template <typename P, typename D, typename Body>
void with_model(const ModelFolder& folder, const trireme::ModelContext& context, const Body& body) {
  using namespace trireme;
  if (folder.type == "gpt2") {
    models::GptOptions options = models::gpt_options(folder.path);
    options.dropout = 0;
    models::Gpt<P, D> model(options, context);
    models::load_pretrained(model, folder.path);
    body(model);
  } else if (folder.type == "gpt_neox") {
    models::GptNeoX<P, D> model(models::gpt_neox_options(folder.path), context);
    models::load_pretrained(model, folder.path);
    body(model);
  } else {
    models::Llama<P, D> model(models::llama_options(folder.path), context);
    models::load_pretrained(model, folder.path);
    body(model);
  }
}
