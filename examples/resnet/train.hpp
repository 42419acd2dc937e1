#pragma once

#include <string>

#include "training/recipe.hpp"
#include "trireme/data/augmentation.hpp"

// What train_resnet can be told beside the options of a run.
struct ResNetRecipe : Recipe {
  std::string test_data;
  std::string model = "resnet18";
  double label_smoothing = 0;
  trireme::data::Augmentation augmentation = {};

  void add_to(trireme::trainer::CommandLine& line);
};

// P: Float32, MixedBfloat16, MixedFloat16; D: where the model computes.
template <typename P, typename D>
void train(trireme::trainer::Run& run, const ResNetRecipe& recipe);
