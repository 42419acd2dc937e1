// What the files beside this one include.
#include "trireme/autograd/composed/operators.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/nn/base/module_list.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/staged/staged.hpp"
#include "trireme/parallel/step/step.hpp"
