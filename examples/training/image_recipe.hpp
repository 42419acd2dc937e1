#pragma once

#include <string>

#include "training/recipe.hpp"
#include "trireme/data/images/augmentation.hpp"
#include "trireme/data/sources/bad_samples.hpp"

// The options of the trainers on images in addition to those of Recipe.
struct ImageRecipe : Recipe {
  std::string test_data;
  std::int64_t image_size = 0;  // pixels to which images are resized, where the data or the model leave it open
  std::int64_t classes = 0;     // of tar archives
  std::string bad_samples = "stop";
  std::int64_t most_bad_samples = trireme::data::BadSampleOptions().most;
  double label_smoothing = 0;
  trireme::data::Augmentation augmentation = {};

  // Optional parts of `augmentation`; 0: off.
  double random_resized_crop = 0;
  int rand_augment = 0;
  int rand_augment_magnitude = default_magnitude;
  double random_erasing = 0;

  // Adds the options of images that are decoded.
  void add_archives(trireme::trainer::CommandLine& line);
  // Adds the number of classes of tar archives.
  void add_classes(trireme::trainer::CommandLine& line);
  // Adds the size of images of tar archives, for models that don't say it.
  void add_image_size(trireme::trainer::CommandLine& line);
  // Adds the options of test images.
  void add_test_images(trireme::trainer::CommandLine& line);
  // Adds the options of the loss and of augmentation. Call it after the model's options are added.
  void add_augmentation(trireme::trainer::CommandLine& line);

  trireme::data::BadSampleOptions bad_sample_options() const;
  trireme::data::PrefetchOptions ahead_of_archives() const;  // images in memory are not read ahead

 private:
  void finish_augmentation();

  static constexpr int default_magnitude = trireme::data::RandAugment().magnitude;
};
