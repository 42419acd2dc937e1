#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint_model.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/models/folders/adapter.hpp"
#include "trireme/models/folders/hugging_face.hpp"
#include "trireme/nn/weights/lora.hpp"

// Describes the model in a folder of transformers or in a checkpoint.
struct ModelFolder {
  trireme::Location path;        // folder of config.json and the tokenizer; empty: the checkpoint has all
  trireme::Location checkpoint;  // its weights are used; empty: those in `path`
  trireme::Location adapter;     // folder of PEFT; empty: none
  trireme::models::Family family = {};
  std::vector<std::int32_t> stop = {};  // eos_token_id of generation_config.json, or of config.json
};
// `refused`: families that the program does not accept, with the reason for the message.
ModelFolder read_model_folder(const trireme::Location& path, const trireme::Location& adapter,
                              const std::map<trireme::models::Family, std::string>& refused = {});

// Loads the weights of the folder, or of its checkpoint, into the model. Collective.
template <typename Model>
void load_model(Model& model, const ModelFolder& folder, const trireme::Group& world) {
  if (folder.checkpoint.empty()) {
    trireme::models::load_pretrained(model, folder.path);
  } else {
    load_checkpoint(model.model(), folder.checkpoint, world);
  }
}

// Returns the result of read(). If it throws on one rank, all ranks throw. Collective.
template <typename Read>
auto read_on_all(const trireme::Group& world, std::string_view name, const Read& read) {
  std::optional<decltype(read())> result;
  world.agree([&] { result.emplace(read()); }, name);
  return *std::move(result);
}

// Adds the adapter of the folder to the context, if it has one.
inline trireme::ModelContext context_of(const ModelFolder& folder, trireme::ModelContext context) {
  if (!folder.adapter.empty()) context.lora = trireme::models::lora_options(folder.adapter);
  return context;
}

// Loads the model with load(). If it has an adapter, loads that too and merges it into the weights.
void fill(auto& model, const ModelFolder& folder, const auto& load) {
  load();
  if (!model.context().lora) return;
  trireme::models::load_adapter(model, folder.adapter);
  trireme::nn::merge_adapter(model);
}

// Calls body(model) with the folder's model, whose options read_options() returns. Collective.
template <typename Model>
void with_loaded(const trireme::Group& world, const ModelFolder& folder, const trireme::ModelContext& context,
                 const auto& read_options, const auto& body) {
  const auto read = [&] { return std::pair(read_options(), context_of(folder, context)); };
  const auto [options, with_adapter] = read_on_all(world, "read the model's config", read);
  Model model(options, with_adapter);
  world.agree([&] { fill(model, folder, [&] { load_model(model, folder, world); }); }, "load the model");
  body(model);
}

// The same for a language model.
template <typename P, typename D, typename Body>
void with_model(const trireme::Group& world, const ModelFolder& folder, const trireme::ModelContext& context,
                const Body& body) {
  using namespace trireme;
  using models::Family;
  if (folder.family == Family::gpt2) {
    const auto read_options = [&] {
      models::GptOptions options = folder.path.empty() ? gpt_options_of(folder.checkpoint) : models::gpt_options(folder.path);
      options.dropout = 0;
      options.embedding_dropout.reset();
      return options;
    };
    with_loaded<models::Gpt<P, D>>(world, folder, context, read_options, body);
  } else if (folder.family == Family::gpt_neox) {
    const auto read_options = [&] { return models::gpt_neox_options(folder.path); };
    with_loaded<models::GptNeoX<P, D>>(world, folder, context, read_options, body);
  } else {
    const auto read_options = [&] { return models::llama_options(folder.path); };
    with_loaded<models::Llama<P, D>>(world, folder, context, read_options, body);
  }
}
