#pragma once

#include <string>

#include "training/image_recipe.hpp"

// The options of train_resnet in addition to those of a run.
struct ResNetRecipe : ImageRecipe {
  std::string model = "resnet18";

  void add_to(trireme::trainer::CommandLine& line);
};

// P: Float32, MixedBfloat16, MixedFloat16; D: where the model computes.
template <typename P, typename D>
void train(trireme::trainer::Run& run, const ResNetRecipe& recipe);
