#include "models.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "trireme/core/error.hpp"
#include "trireme/models/folders/hugging_face.hpp"

using namespace trireme;

namespace {

// Models by name, for tokens that are bytes.
const std::map<std::string, LmOptions>& model_sizes() {
  using models::BertOptions, models::GptOptions, models::LlamaOptions;
  const nn::MixtureOfExpertsOptions experts{.count = 8, .top_k = 2, .auxiliary_loss = 0.01, .z_loss = 0.001};
  static const std::map<std::string, LmOptions> sizes{
      {"bert:1m", BertOptions{.layers = 5, .heads = 4, .width = 128, .hidden = 512, .vocabulary = 256}},
      {"bert:10m", BertOptions{.layers = 6, .heads = 6, .width = 384, .hidden = 1536, .vocabulary = 256}},
      {"bert:110m", BertOptions{.layers = 12, .heads = 12, .width = 768, .hidden = 3072, .vocabulary = 256}},
      {"gpt2:1m", GptOptions{.layers = 5, .heads = 4, .width = 128, .block = 1024}},
      {"gpt2:10m", GptOptions{.layers = 6, .heads = 6, .width = 384, .block = 1024}},
      {"gpt2:124m", GptOptions{.layers = 12, .heads = 12, .width = 768, .block = 1024}},
      {"llama:1m", LlamaOptions{.layers = 5, .heads = 4, .kv_heads = 2, .width = 128, .hidden = 384, .tied = true}},
      {"llama:10m", LlamaOptions{.layers = 6, .heads = 6, .kv_heads = 2, .width = 384, .hidden = 1024, .tied = true}},
      {"llama:100m", LlamaOptions{.layers = 16, .heads = 12, .kv_heads = 4, .width = 768, .hidden = 2048, .tied = true}},
      {"llama:1b",
       LlamaOptions{
           .layers = 16, .heads = 32, .kv_heads = 8, .width = 2048, .hidden = 8192, .rotary_base = 500000, .tied = true}},
      {"moe:4m",
       LlamaOptions{.layers = 5, .heads = 4, .kv_heads = 2, .width = 128, .hidden = 256, .tied = true, .experts = experts}},
      {"moe:40m",
       LlamaOptions{.layers = 6, .heads = 6, .kv_heads = 2, .width = 384, .hidden = 768, .tied = true, .experts = experts}}};
  return sizes;
}

models::BertOptions masked_bert_options(const std::string& folder) {
  models::BertOptions options = models::bert_options(folder);
  require(options.classes == 0, "{} is a classifier of {} classes, and train_lm trains BERTs to fill in masked tokens", folder,
          options.classes);
  return options;
}

LmOptions folder_options(const std::string& folder) {
  using models::Family;
  switch (models::family_of(folder, {{Family::vit, "train_vit trains vision transformers"}})) {
    case Family::gpt2: return models::gpt_options(folder);
    case Family::gpt_neox: return models::gpt_neox_options(folder);
    case Family::bert: return masked_bert_options(folder);
    case Family::llama:
    case Family::vit: break;  // refused
  }
  return models::llama_options(folder);
}

}  // namespace

std::vector<std::string> names_of_sizes() {
  std::vector<std::string> names;
  for (const auto& [name, options] : model_sizes()) names.push_back(name);
  return names;
}

LmOptions model_options(const LmRecipe& recipe, const std::optional<tokenizers::Tokenizer>& tokenizer) {
  const std::string& model = recipe.model.empty() ? recipe.init : recipe.model;
  const auto known = model_sizes().find(model);
  if (known == model_sizes().end()) {
    for (const char* family : {"bert:", "gpt2:", "llama:", "moe:"}) {
      require(!model.starts_with(family), "--model {}: use one of {}, or a folder of transformers", model,
              fmt::join(names_of_sizes(), ", "));
    }
    return folder_options(model);
  }
  LmOptions options = known->second;
  if (tokenizer) std::visit([&](auto& each) { each.vocabulary = tokenizer->vocabulary_size(); }, options);
  return options;
}
