#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "training/recipe.hpp"
#include "trireme/models/llama.hpp"
#include "trireme/tokenizers/tokenizer.hpp"

// What train_lm can be told beside the options of a run.
struct LmRecipe : Recipe {
  std::string model;            // a folder, or a name of model_sizes()
  std::string tokens = "text";  // what --data holds
  std::string tokenizer;        // a folder or file, or "byte"
  std::int64_t block = 256;
  std::string save_dtype = "float32";

  LmRecipe() { in_folders = true; }
  void add_to(trireme::trainer::CommandLine& line);
};

// Of --model, or of --init where that is not given. What has a name has the tokens of the tokenizer, or of bytes.
trireme::models::LlamaOptions model_options(const LmRecipe& recipe,
                                            const std::optional<trireme::tokenizers::Tokenizer>& tokenizer);

// P: Float32, MixedBfloat16, MixedFloat16; D: where the model computes.
template <typename P, typename D>
void train(trireme::trainer::Run& run, const LmRecipe& recipe);
