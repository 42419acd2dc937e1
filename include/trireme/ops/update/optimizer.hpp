#pragma once

#include <cstddef>

#include "trireme/device/device.hpp"
#include "trireme/ops/update/optimizer_options.hpp"

// The passes of the optimizers over a range of the flat store: every element is read and written once. All pointers are to
// `count` elements; gradient_scale multiplies every gradient first (clipping, averaging). What a
// step names in on_device is read when the pass runs.
namespace trireme::ops {

// Kingma, Ba 2015, arXiv 1412.6980, and Loshchilov, Hutter 2019, arXiv 1711.05101: w -= lr * m_hat / (sqrt(v_hat) + eps), as
// torch.optim.Adam and AdamW. With `largest` (AMSGrad; Reddi et al. 2018, arXiv 1904.09237) the largest v so far stands for v;
// null without.
template <typename T, typename D = Cpu>
void adam(T* weight, const T* gradient, T* first_moment, T* second_moment, T* largest, std::size_t count, const AdamStep& step,
          D = {});

// `momentum` is null when step.momentum is 0.
template <typename T, typename D = Cpu>
void sgd(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdStep& step, D = {});

// As torch.optim.RMSprop. `average` (of the gradients) is null unless centered, `momentum` when step.momentum is 0.
template <typename T, typename D = Cpu>
void rmsprop(T* weight, const T* gradient, T* square_average, T* average, T* momentum, std::size_t count,
             const RmspropStep& step, D = {});

// Duchi, Hazan, Singer 2011: w -= lr * g / (sqrt(sum of g^2) + eps), as torch.optim.Adagrad.
template <typename T, typename D = Cpu>
void adagrad(T* weight, const T* gradient, T* sum_of_squares, std::size_t count, const AdagradStep& step, D = {});

// Chen et al. 2023, arXiv 2302.06675: w -= lr * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * w), then m moves by beta2.
template <typename T, typename D = Cpu>
void lion(T* weight, const T* gradient, T* momentum, std::size_t count, const LionStep& step, D = {});

// You et al. 2020, arXiv 1904.00962, in two passes: the moments, and *squares += the sums of the squares of w and of
// u = m_hat / (sqrt(v_hat) + eps) + weight_decay * w, in double; then w -= lr * |w| / |u| * u.
template <typename T, typename D = Cpu>
void lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                  const LambStep& step, UpdateSquares* squares, D = {});
template <typename T, typename D = Cpu>
void lamb(T* weight, const T* first_moment, const T* second_moment, std::size_t count, const LambStep& step, D = {});

// You, Gitman, Ginsburg 2017, arXiv 1708.03888, in two passes: *squares += the sums of the squares of w and of the gradient
// as it is, in double; then v = momentum * v + lr * local rate * (g + weight_decay * w); w -= v.
template <typename T, typename D = Cpu>
void lars_squares(const T* weight, const T* gradient, std::size_t count, UpdateSquares* squares, D = {});
template <typename T, typename D = Cpu>
void lars(T* weight, const T* gradient, T* momentum, std::size_t count, const LarsStep& step, D = {});

// gradient = gradient_scale * gradient, but not outside [-limit, limit]; nan stays nan.
template <typename T, typename D = Cpu>
void clip_by_value(T* gradient, std::size_t count, const ClipStep& step, D = {});

// average += rate * (value - average).
template <typename T, typename D = Cpu>
void move_average(T* average, const T* value, std::size_t count, double rate, D = {});

}  // namespace trireme::ops
