#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trireme/models/architectures/gpt.hpp"
#include "trireme/parallel/data_parallel.hpp"

// A small GPT on meshes of data, pipeline and tensor axes, on any backend.
namespace trireme::tests {

struct GptLayout {
  int data = 1;
  int pipeline = 1;
  int tensor = 1;
  bool sequence_parallel = false;
  std::string schedule = "1f1b";
  int chunks = 1;
  std::vector<double> layer_costs = {};
  parallel::Sharding sharding = parallel::Sharding::none;
  double attention_dropout = 0;

  int ranks() const { return data * pipeline * tensor; }
  std::string str() const;
};

inline constexpr std::int64_t gpt_time_steps = 8;
inline constexpr models::GptOptions gpt_options{
    .layers = 8, .heads = 2, .width = 16, .block = gpt_time_steps, .vocabulary = 37, .dropout = 0.1};

// Micro-batches of `rows` samples each, from sample `first` of a step on.
std::vector<data::TokenBatch> gpt_batches(std::int64_t step, std::int64_t first, int count, std::int64_t rows);

struct GptTraining {
  std::vector<StepSummary> summaries;
  std::unique_ptr<models::Gpt<Float64>> model;
};

// Three steps of LAMB, clipped, with dropout.
GptTraining train_gpt(const Group& world, const GptLayout& layout);

// Throws where losses, norms or this rank's values differ from those of the whole model by more than rounding in double.
void require_same_training(const GptTraining& had, const GptTraining& whole);

}  // namespace trireme::tests
