#pragma once

#include <cstdint>
#include <string>

#include "training/recipe.hpp"
#include "trireme/models/llama.hpp"

// What train_lm can be told beside the options of a run.
struct LmRecipe : Recipe {
  std::string model;            // a folder, or a name of model_sizes()
  std::string tokens = "byte";  // what --data holds
  std::int64_t block = 256;
  std::string save_dtype = "float32";

  LmRecipe() { in_folders = true; }
  void add_to(trireme::trainer::CommandLine& line);
};

// Of --model, or of --init where that is not given.
trireme::models::LlamaOptions model_options(const LmRecipe& recipe);

// P: Float32, MixedBfloat16, MixedFloat16; D: where the model computes.
template <typename P, typename D>
void train(trireme::trainer::Run& run, const LmRecipe& recipe);
