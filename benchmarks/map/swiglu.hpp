#pragma once

#include "trireme/autograd/variable.hpp"

trireme::Variable<float> swiglu_product(const trireme::Variable<float>& gate, const trireme::Variable<float>& up);
