#pragma once

#include <cstdint>
#include <string>

#include "adapter.hpp"
#include "training/recipe.hpp"

// The options of train_lm in addition to those of a run.
struct LmRecipe : Recipe {
  std::string model;            // a folder, or one of names_of_sizes()
  std::string tokenizer;        // a folder or file, or "byte"
  std::string chat_template;    // empty: the folder's
  bool packing = false;         // puts several conversations into a sequence
  std::int64_t max_tokens = 0;  // of a batch of conversations of about one length; 0: no such batches
  std::int64_t block = 256;
  AdapterRecipe adapter;

  LmRecipe() { in_folders = true; }
  void add_to(trireme::trainer::CommandLine& line);
};
