#pragma once

// The bodies of models and optimizers, for programs with a precision policy of their own. Include this header in one source
// file that explicitly instantiates the models and optimizers that the program needs, or in every source file that uses them.
// The library contains compiled models and optimizers for Float32, MixedBfloat16 and MixedFloat16.
//
//   #include "trireme/trireme-inl.hpp"
//
//   struct Own { using Compute = float; using Master = float; using Gradient = float; };
//   models::Gpt<Own> model({.layers = 2, .heads = 2, .width = 32});

#include "trireme/models/architectures/bert-inl.hpp"
#include "trireme/models/architectures/cnn-inl.hpp"
#include "trireme/models/architectures/gan-inl.hpp"
#include "trireme/models/architectures/generate-inl.hpp"
#include "trireme/models/architectures/gpt-inl.hpp"
#include "trireme/models/architectures/gpt_neox-inl.hpp"
#include "trireme/models/architectures/layer_costs-inl.hpp"
#include "trireme/models/architectures/llama-inl.hpp"
#include "trireme/models/architectures/lstm_lm-inl.hpp"
#include "trireme/models/architectures/next_token-inl.hpp"
#include "trireme/models/architectures/resnet-inl.hpp"
#include "trireme/models/architectures/vision_transformer-inl.hpp"
#include "trireme/optim/adamw_8bit-inl.hpp"
#include "trireme/optim/lookahead-inl.hpp"
#include "trireme/optim/moving_average-inl.hpp"
#include "trireme/optim/named-inl.hpp"
#include "trireme/optim/optimizer-inl.hpp"
#include "trireme/optim/schedule_free_adamw-inl.hpp"
#include "trireme/optim/sharpness_aware-inl.hpp"
