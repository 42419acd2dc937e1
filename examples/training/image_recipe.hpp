#pragma once

#include <string>

#include "training/recipe.hpp"
#include "trireme/data/images/augmentation.hpp"

// What trainers of classifiers of images can be told beside a Recipe.
struct ImageRecipe : Recipe {
  std::string test_data;
  double label_smoothing = 0;
  trireme::data::Augmentation augmentation = {};

  // Of the parts of it that are there or not; 0: not.
  double random_resized_crop = 0;
  int rand_augment = 0;
  int rand_augment_magnitude = default_magnitude;
  double random_erasing = 0;

  // The options of test images.
  void add_test_images(trireme::trainer::CommandLine& line);
  // Of the loss and of what is done to training images, after the options of the model.
  void add_augmentation(trireme::trainer::CommandLine& line);

 private:
  void finish_augmentation();

  static constexpr int default_magnitude = trireme::data::RandAugment().magnitude;
};
