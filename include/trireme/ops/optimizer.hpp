#pragma once

#include <cstddef>

#include "trireme/device/device.hpp"

// The passes of the optimizers over a range of the flat store: every element is read and written once. All pointers are to
// `count` elements; gradient_scale multiplies every gradient first (clipping, averaging).
namespace trireme::ops {

struct AdamStep {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;       // weight decay apart from the moments, as AdamW; otherwise added to the gradient
  double bias_correction1 = 1;  // 1 - beta1^step
  double bias_correction2 = 1;  // 1 - beta2^step
  double gradient_scale = 1;
};

// Kingma, Ba 2015, arXiv 1412.6980, and Loshchilov, Hutter 2019, arXiv 1711.05101: w -= lr * m_hat / (sqrt(v_hat) + eps), as
// torch.optim.Adam and AdamW. With `largest` (AMSGrad; Reddi et al. 2018, arXiv 1904.09237) the largest v so far stands for v;
// null without.
template <typename T>
void adam(T* weight, const T* gradient, T* first_moment, T* second_moment, T* largest, std::size_t count, const AdamStep& step,
          Cpu = {});

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

struct RmspropStep {
  double learning_rate = 0;
  double smoothing = 0.99;
  double epsilon = 1e-8;
  double momentum = 0;
  double weight_decay = 0;
  double gradient_scale = 1;
};

// As torch.optim.RMSprop. `average` (of the gradients) is null unless centered, `momentum` when step.momentum is 0.
template <typename T>
void rmsprop(T* weight, const T* gradient, T* square_average, T* average, T* momentum, std::size_t count,
             const RmspropStep& step, Cpu = {});

struct AdagradStep {
  double learning_rate = 0;
  double epsilon = 1e-10;
  double weight_decay = 0;
  double gradient_scale = 1;
};

// Duchi, Hazan, Singer 2011: w -= lr * g / (sqrt(sum of g^2) + eps), as torch.optim.Adagrad.
template <typename T>
void adagrad(T* weight, const T* gradient, T* sum_of_squares, std::size_t count, const AdagradStep& step, Cpu = {});

struct LionStep {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;
  double gradient_scale = 1;
};

// Chen et al. 2023, arXiv 2302.06675: w -= lr * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * w), then m moves by beta2.
template <typename T>
void lion(T* weight, const T* gradient, T* momentum, std::size_t count, const LionStep& step, Cpu = {});

// Sums of squares of a range's weights and of its update.
struct UpdateSquares {
  double weight = 0;
  double update = 0;
};

struct LambStep {
  double learning_rate = 0;  // times the trust ratio
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0;
  double bias_correction1 = 1;
  double bias_correction2 = 1;
  double gradient_scale = 1;
};

// You et al. 2020, arXiv 1904.00962, in two passes: the moments and the squares of w and of
// u = m_hat / (sqrt(v_hat) + eps) + weight_decay * w, in double in blocks of 4,096 elements; then w -= lr * u.
template <typename T>
UpdateSquares lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                           const LambStep& step, Cpu = {});
template <typename T>
void lamb(T* weight, const T* first_moment, const T* second_moment, std::size_t count, const LambStep& step, Cpu = {});

struct LarsStep {
  double learning_rate = 0;  // times the local rate
  double momentum = 0.9;
  double weight_decay = 0;
  double gradient_scale = 1;
};

// You, Gitman, Ginsburg 2017, arXiv 1708.03888: v = momentum * v + lr * (g + weight_decay * w); w -= v.
template <typename T>
void lars(T* weight, const T* gradient, T* momentum, std::size_t count, const LarsStep& step, Cpu = {});

// gradient = scale * gradient, but not outside [-limit, limit]; nan stays nan.
template <typename T>
void clip_by_value(T* gradient, std::size_t count, double scale, double limit, Cpu = {});

// average += rate * (value - average).
template <typename T>
void move_average(T* average, const T* value, std::size_t count, double rate, Cpu = {});

}  // namespace trireme::ops
