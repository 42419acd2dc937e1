#pragma once

#include <cstddef>

#include "trireme/device/device.hpp"

// One pass over a range of the flat store: every element is read and written once.
namespace trireme::ops {

struct AdamWStep {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double bias_correction1 = 1;  // 1 - beta1^step
  double bias_correction2 = 1;  // 1 - beta2^step
  double gradient_scale = 1;    // multiplies every gradient first: clipping, averaging
};

// Loshchilov, Hutter 2019, arXiv 1711.05101: w -= lr * (m_hat / (sqrt(v_hat) + eps) + weight_decay * w), as torch.optim.AdamW.
template <typename T>
void adamw(T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count, const AdamWStep& step, Cpu = {});

struct SgdStep {
  double learning_rate = 0;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool first = false;  // the momentum buffer starts as the gradient, as torch.optim.SGD
  double gradient_scale = 1;
};

// `momentum` is null when step.momentum is 0.
template <typename T>
void sgd(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdStep& step, Cpu = {});

// Sum of squares and largest magnitude of a gradient range, in double in blocks of 4,096 elements.
struct GradientNorms {
  double sum_of_squares = 0;
  double max_abs = 0;  // nan or inf when an element is
};
template <typename T>
GradientNorms gradient_norms(const T* gradient, std::size_t count, Cpu = {});

}  // namespace trireme::ops
