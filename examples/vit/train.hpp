#pragma once

#include <cstdint>
#include <string>

#include "training/image_recipe.hpp"
#include "trireme/models/architectures/vision_transformer.hpp"

// What train_vit can be told beside the options of a run.
struct VitRecipe : ImageRecipe {
  std::string model;            // a folder, or a name of model_sizes(); empty: --init's
  std::int64_t image_size = 0;  // of images in folders; 0: the model's
  std::int64_t patch_size = 0;  // of a model by name; 0: by the images
  bool allow_missing = false;

  VitRecipe() { in_folders = true; }
  void add_to(trireme::trainer::CommandLine& line);
};

// Of --model, or of --init where that is not given; those of a name for images of this size.
trireme::models::VisionTransformerOptions model_options(const VitRecipe& recipe, std::int64_t image_size);
bool is_named(const VitRecipe& recipe);  // of model_sizes()

// P: Float32, MixedBfloat16, MixedFloat16; D: where the model computes.
template <typename P, typename D>
void train(trireme::trainer::Run& run, const VitRecipe& recipe);
