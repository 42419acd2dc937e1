#pragma once

#include <cstdint>
#include <string>

#include "training/image_recipe.hpp"
#include "trireme/models/architectures/vision_transformer.hpp"

// The options of train_vit in addition to those of a run.
struct VitRecipe : ImageRecipe {
  std::string model;            // a folder, or a name of model_sizes(); empty: --init's
  std::int64_t patch_size = 0;  // of a model by name; 0: depends on the size of the images
  bool allow_missing = false;

  VitRecipe() { in_folders = true; }
  void add_to(trireme::trainer::CommandLine& line);
};

// The options of --model, or of --init if that is not given; a model by name is for images of this size.
trireme::models::VisionTransformerOptions model_options(const VitRecipe& recipe, std::int64_t image_size);
bool is_named(const VitRecipe& recipe);  // whether --model is one of model_sizes()

// P: Float32, MixedBfloat16, MixedFloat16; D: where the model computes.
template <typename P, typename D>
void train(trireme::trainer::Run& run, const VitRecipe& recipe);
