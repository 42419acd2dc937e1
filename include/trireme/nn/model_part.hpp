#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "trireme/core/collectives.hpp"
#include "trireme/core/range.hpp"

namespace trireme::nn {

// The part of a model that a rank holds: parallel::model_part makes it of a mesh. A model takes one at construction; written
// once, it is then plain or split.
struct ModelPart {
  Axis tensor = {};  // null: layers as a whole
  // Between split layers every rank of the tensor axis has its own rows [rows / size, width] of what they pass on, not all of
  // them (Korthikanti et al. 2022, arXiv 2205.05198).
  bool sequence_parallel = false;

  // The stages of a pipeline, and those that lie here.
  int num_stages = 1;
  std::vector<int> stages = {0};
  Axis pipeline = {};  // null: all stages lie here
  // The ranks of the first and of the last stage, on both of them: what these stages share is held twice. Null: one rank has
  // both.
  Axis ends = {};
  std::vector<double> layer_costs = {};  // by which models divide their layers into stages; empty: as evenly as can be

  bool has_stage(int stage) const { return std::ranges::find(stages, stage) != stages.end(); }
};

// Consecutive layers for each stage, at least one, so that the most expensive stage costs as little as can be; of those
// divisions one with the least sum of squares. Costs are in any unit.
std::vector<Range> divide_layers(std::span<const double> costs, int num_stages);

}  // namespace trireme::nn
