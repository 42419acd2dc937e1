#pragma once

// Everything a training program needs.

#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/parameter.hpp"
#include "trireme/comm/group.hpp"
#include "trireme/comm/launch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/mesh/process_mesh.hpp"
#include "trireme/models/gpt.hpp"
#include "trireme/models/gpt2_safetensors.hpp"
#include "trireme/nn/layers.hpp"
#include "trireme/nn/transformer.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/optim/schedule.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/settings.hpp"
#include "trireme/precision/policy.hpp"
#include "trireme/tensor/tensor.hpp"
