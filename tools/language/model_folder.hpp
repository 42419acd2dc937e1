#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint_model.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/models/folders/adapter.hpp"
#include "trireme/models/folders/hugging_face.hpp"
#include "trireme/nn/weights/lora.hpp"

// A folder of transformers, or a checkpoint, as far as a program has to know which model it holds.
struct ModelFolder {
  trireme::Location path;        // of config.json and the tokenizer; empty: the checkpoint says all
  trireme::Location checkpoint;  // whose weights are taken; empty: those in path
  trireme::Location adapter;     // of PEFT; empty: none
  trireme::models::Family family = {};
  std::vector<std::int32_t> stop = {};  // eos_token_id of generation_config.json, or of config.json
};
// `refused`: families that the program does not take, and what it says of them.
ModelFolder read_model_folder(const trireme::Location& path, const trireme::Location& adapter,
                              const std::map<trireme::models::Family, std::string>& refused = {});

// Fills the model with the weights of the folder, or of its checkpoint. Collective.
template <typename Model>
void load_model(Model& model, const ModelFolder& folder, const trireme::Group& world) {
  if (folder.checkpoint.empty()) {
    trireme::models::load_pretrained(model, folder.path);
  } else {
    load_checkpoint(model.model(), folder.checkpoint, world);
  }
}

// Calls body(model) with a model of these options that load(model) has filled, with the weights of the folder's adapter merged
// into its own.
template <typename Model>
void with_loaded(const ModelFolder& folder, const auto& options, trireme::ModelContext context, const auto& load,
                 const auto& body) {
  using namespace trireme;
  if (!folder.adapter.empty()) context.lora = models::lora_options(folder.adapter);
  Model model(options, context);
  load(model);
  if (context.lora) {
    models::load_adapter(model, folder.adapter);
    nn::merge_adapter(model);
  }
  body(model);
}

// The same with the folder's model, a language model.
template <typename P, typename D, typename Body>
void with_model(const trireme::Group& world, const ModelFolder& folder, const trireme::ModelContext& context,
                const Body& body) {
  using namespace trireme;
  using models::Family;
  const auto load = [&](auto& model) { load_model(model, folder, world); };
  if (folder.family == Family::gpt2) {
    models::GptOptions options = folder.path.empty() ? gpt_options_of(folder.checkpoint) : models::gpt_options(folder.path);
    options.dropout = 0;
    options.embedding_dropout.reset();
    with_loaded<models::Gpt<P, D>>(folder, options, context, load, body);
  } else if (folder.family == Family::gpt_neox) {
    with_loaded<models::GptNeoX<P, D>>(folder, models::gpt_neox_options(folder.path), context, load, body);
  } else {
    with_loaded<models::Llama<P, D>>(folder, models::llama_options(folder.path), context, load, body);
  }
}
