#pragma once

#include <cstdint>
#include <string>

#include "training/image_recipe.hpp"

// The options of train_gan in addition to those of a run.
struct GanRecipe : ImageRecipe {
  std::string model = "dcgan";
  std::int64_t latent = 64;
  std::int64_t features = 0;  // 0: the model's own
  std::string samples;        // a PNG file
  std::int64_t sample_interval = 100;

  void add_to(trireme::trainer::CommandLine& line);
};

// P: Float32, MixedBfloat16, MixedFloat16; D: where the models compute.
template <typename P, typename D>
void train(trireme::trainer::Run& run, const GanRecipe& recipe);
