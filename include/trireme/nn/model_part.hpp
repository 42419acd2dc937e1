#pragma once

#include <memory>

#include "trireme/autograd/tensor_axis.hpp"

namespace trireme::nn {

// The part of a model that a rank holds: parallel::model_part makes it of a mesh. A model takes one at construction; written
// once, it is then plain or split.
struct ModelPart {
  std::shared_ptr<const TensorAxis> tensor = {};  // null: layers as a whole
};

}  // namespace trireme::nn
