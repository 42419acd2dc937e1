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

  // Of the parts of it that are there or not; 0: not.
  double random_resized_crop = 0;
  int rand_augment = 0;
  int rand_augment_magnitude = default_magnitude;
  double random_erasing = 0;

  void add_to(trireme::trainer::CommandLine& line);

 private:
  void add_augmentation(trireme::trainer::CommandLine& line);
  void finish_augmentation();

  static constexpr int default_magnitude = trireme::data::RandAugment().magnitude;
};

// P: Float32, MixedBfloat16, MixedFloat16; D: where the model computes.
template <typename P, typename D>
void train(trireme::trainer::Run& run, const ResNetRecipe& recipe);
