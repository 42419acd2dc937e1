// What the files beside this one include.
#include "trireme/autograd/operators.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/nn/layers.hpp"
#include "trireme/nn/module_list.hpp"
#include "trireme/nn/staged.hpp"
#include "trireme/parallel/step.hpp"
