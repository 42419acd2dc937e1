#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "trireme/autograd/tensor_axis.hpp"

namespace trireme::nn {

// The part of a model that a rank holds: parallel::model_part makes it of a mesh. A model takes one at construction; written
// once, it is then plain or split.
struct ModelPart {
  std::shared_ptr<const TensorAxis> tensor = {};  // null: layers as a whole

  // The stages of a pipeline, and those that lie here.
  int num_stages = 1;
  std::vector<int> stages = {0};
  // The ranks of the first and of the last stage, on both of them: what these stages share is held twice. Null: one rank has
  // both.
  std::shared_ptr<const TensorAxis> ends = {};

  bool has_stage(int stage) const { return std::ranges::find(stages, stage) != stages.end(); }
};

}  // namespace trireme::nn
