#pragma once

#include "trireme/nn/weights/weights_format.hpp"

namespace trireme::models {

// The format of a Gpt in files of GPT2LMHeadModel.
nn::WeightsFormat gpt2_format(DType dtype);

}  // namespace trireme::models
