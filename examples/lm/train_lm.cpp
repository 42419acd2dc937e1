// Trains a model of the Llama family on text or tokens, from nothing or from a folder of transformers, on one rank or on many:
// see train_lm --help and docs/train_lm.md.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "train.hpp"
#include "trireme/core/error.hpp"
#include "trireme/models/hugging_face.hpp"

using namespace trireme;
using trainer::Differs;

namespace {

// By name, for bytes.
const std::map<std::string, models::LlamaOptions>& model_sizes() {
  const nn::MixtureOfExpertsOptions experts{.count = 8, .top_k = 2, .auxiliary_loss = 0.01, .z_loss = 0.001};
  static const std::map<std::string, models::LlamaOptions> sizes{
      {"llama:1m", {.layers = 5, .heads = 4, .kv_heads = 2, .width = 128, .hidden = 384, .tied = true}},
      {"llama:10m", {.layers = 6, .heads = 6, .kv_heads = 2, .width = 384, .hidden = 1024, .tied = true}},
      {"llama:100m", {.layers = 16, .heads = 12, .kv_heads = 4, .width = 768, .hidden = 2048, .tied = true}},
      {"llama:1b",
       {.layers = 16, .heads = 32, .kv_heads = 8, .width = 2048, .hidden = 8192, .rotary_base = 500000, .tied = true}},
      {"moe:4m", {.layers = 5, .heads = 4, .kv_heads = 2, .width = 128, .hidden = 256, .tied = true, .experts = experts}},
      {"moe:40m", {.layers = 6, .heads = 6, .kv_heads = 2, .width = 384, .hidden = 768, .tied = true, .experts = experts}}};
  return sizes;
}

std::vector<std::string> names_of_sizes() {
  std::vector<std::string> names;
  for (const auto& [name, options] : model_sizes()) names.push_back(name);
  return names;
}

void check(const LmRecipe& recipe) {
  require(!recipe.data.empty(), "--data is missing: name a text file, a folder of text files, or a file of tokens");
  require(!recipe.model.empty() || !recipe.init.empty(), "--model or --init is missing: name a folder of transformers, or {}",
          fmt::join(names_of_sizes(), ", "));
  require(recipe.block > 0, "--block {} is not above 0", recipe.block);
}

}  // namespace

models::LlamaOptions model_options(const LmRecipe& recipe, const std::optional<tokenizers::Tokenizer>& tokenizer) {
  const std::string& model = recipe.model.empty() ? recipe.init : recipe.model;
  const auto known = model_sizes().find(model);
  if (known != model_sizes().end()) {
    models::LlamaOptions options = known->second;
    if (tokenizer) options.vocabulary = tokenizer->vocabulary_size();
    return options;
  }
  require(!model.starts_with("llama:") && !model.starts_with("moe:"), "--model {}: use one of {}, or a folder of transformers",
          model, fmt::join(names_of_sizes(), ", "));
  return models::llama_options(model);
}

void LmRecipe::add_to(trainer::CommandLine& line) {
  Recipe::add_to(line, "a text file, a folder of text files, or a file of tokens");
  add_text(line);
  add_precision(line);
  line.add("model", model,
           fmt::format("{}; or a folder of transformers, whose config.json says the sizes; not given: --init's",
                       fmt::join(names_of_sizes(), ", ")));
  line.add("tokens", tokens, {"text", "uint16", "uint32"},
           "what the data hold: text; uint16, uint32: a file of such numbers, each a token");
  line.add(
      "tokenizer", tokenizer,
      "of texts: byte: every byte is a token; a folder of transformers, or its tokenizer.json or tokenizer.model; not given: "
      "that of the model's folder, or byte");
  line.add("block", block, "tokens of a sequence");
  line.add("save_dtype", save_dtype, {"float32", "bfloat16", "float16"}, "of the weights in --save");
  line.set_differs("save_dtype", Differs::allowed);
  line.after_parsing([this] { check(*this); });
}

int main(int argc, char** argv) {
  trainer::CommandLine line(
      "Trains a Llama, Mistral, Mixtral or Qwen on text or tokens, on one rank or on many: mpirun -n N train_lm --data FILE "
      "--model "
      "NAME");
  LmRecipe recipe;
  recipe.add_to(line);
  return trainer::launch(
      argc, argv, line, {.until = Steps{1000}, .batch_size = 16, .warmup = 20, .minimum_learning_rate_ratio = 0.1},
      [&](trainer::Run& run) { recipe.with_types([&]<typename P, typename D>(P, D) { train<P, D>(run, recipe); }); });
}
