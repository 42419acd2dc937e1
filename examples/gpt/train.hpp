#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training/recipe.hpp"

// The options of train_gpt in addition to those of a run.
struct GptRecipe : Recipe {
  std::string tokenizer = "byte";
  std::int64_t vocabulary = 0;  // of token shards; 0: as many as --data have
  int layers = 6;
  int heads = 6;
  std::int64_t width = 384;
  std::int64_t block = 256;
  double dropout = 0;
  double attention_dropout = 0;
  std::string fp8 = "none";
  std::string layer_costs = "equal";

  void add_to(trireme::trainer::CommandLine& line);
};

// The numbers of --layer-costs; none if it is "equal" or "measured".
std::vector<double> given_layer_costs(const GptRecipe& recipe);

// P: Float32, MixedBfloat16, MixedFloat16; D: where the model computes.
template <typename P, typename D>
void train(trireme::trainer::Run& run, const GptRecipe& recipe);
