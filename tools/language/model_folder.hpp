#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trireme/models/adapter.hpp"
#include "trireme/models/hugging_face.hpp"
#include "trireme/nn/lora.hpp"

// A folder of transformers, as far as a program has to know which model it holds.
struct ModelFolder {
  std::filesystem::path path;
  std::filesystem::path adapter;  // of PEFT; empty: none
  trireme::models::Family family = {};
  std::vector<std::int32_t> stop = {};  // eos_token_id of generation_config.json, or of config.json
};
// `refused`: families that the program does not take, and what it says of them.
ModelFolder read_model_folder(const std::filesystem::path& path, const std::filesystem::path& adapter,
                              const std::map<trireme::models::Family, std::string>& refused = {});

// Calls body(model) with a model of these options and the folder's weights, with those of its adapter merged into them.
template <typename Model>
void with_loaded(const ModelFolder& folder, const auto& options, trireme::ModelContext context, const auto& body) {
  using namespace trireme;
  if (!folder.adapter.empty()) context.lora = models::lora_options(folder.adapter);
  Model model(options, context);
  models::load_pretrained(model, folder.path);
  if (context.lora) {
    models::load_adapter(model, folder.adapter);
    nn::merge_adapter(model);
  }
  body(model);
}

// The same with the folder's model, a language model.
template <typename P, typename D, typename Body>
void with_model(const ModelFolder& folder, const trireme::ModelContext& context, const Body& body) {
  using namespace trireme;
  using models::Family;
  if (folder.family == Family::gpt2) {
    models::GptOptions options = models::gpt_options(folder.path);
    options.dropout = 0;
    options.embedding_dropout.reset();
    with_loaded<models::Gpt<P, D>>(folder, options, context, body);
  } else if (folder.family == Family::gpt_neox) {
    with_loaded<models::GptNeoX<P, D>>(folder, models::gpt_neox_options(folder.path), context, body);
  } else {
    with_loaded<models::Llama<P, D>>(folder, models::llama_options(folder.path), context, body);
  }
}
