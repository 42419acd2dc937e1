#pragma once

#include <cstdint>
#include <string>

#include "training/recipe.hpp"

// The options of train_lstm in addition to those of a run.
struct LstmRecipe : Recipe {
  std::string tokenizer = "character";
  std::int64_t vocabulary = 10'000;  // of token shards 0: as many as --data have
  std::int64_t embedding = 256;
  std::int64_t hidden = 512;
  int layers = 2;
  double dropout = 0;
  std::int64_t block = 64;

  void add_to(trireme::trainer::CommandLine& line);
};

// D: where the model computes.
template <typename D>
void train(trireme::trainer::Run& run, const LstmRecipe& recipe);
