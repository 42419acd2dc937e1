#include "trireme/ops/update/optimizer.hpp"

#include <limits>

#include "ops/compare.hpp"
#include "ops/threads.hpp"
#include "trireme/ops/update/adagrad.hpp"
#include "trireme/ops/update/adam.hpp"
#include "trireme/ops/update/rmsprop.hpp"
#include "trireme/ops/update/sgd.hpp"

using namespace trireme;
using namespace trireme::ops;

TEMPLATE_TEST_CASE("adamw follows its formula", "", float, double) {
  using T = TestType;
  constexpr std::int64_t count = 101;
  const auto g = random_tensor<T>({count}, 1);
  auto w = random_tensor<T>({count}, 2);
  auto m = random_tensor<T>({count}, 3, 0.1);
  auto v = random_tensor<T>({count}, 4, 0.1);
  for (T& element : v.span()) element = element * element;
  const AdamStep step{.learning_rate = 0.01,
                      .beta1 = 0.8,
                      .beta2 = 0.95,
                      .epsilon = 1e-6,
                      .weight_decay = 0.1,
                      .decoupled = true,
                      .update = 2,
                      .gradient_scale = 0.5};
  Doubles weights;
  Doubles firsts;
  Doubles seconds;
  for (std::size_t i = 0; i < count; ++i) {
    const double gradient = 0.5 * static_cast<double>(g.span()[i]);
    firsts.push_back(0.8 * static_cast<double>(m.span()[i]) + 0.2 * gradient);
    seconds.push_back(0.95 * static_cast<double>(v.span()[i]) + 0.05 * gradient * gradient);
    const double update = firsts[i] / 0.36 / (std::sqrt(seconds[i] / (1 - 0.95 * 0.95)) + 1e-6);
    weights.push_back(static_cast<double>(w.span()[i]) * (1 - 0.01 * 0.1) - 0.01 * update);
  }
  update_elements<AdamUpdate<T>>(step, count, {g.data(), w.data(), m.data(), v.data(), nullptr});
  require_close(w, weights, tolerance<T>(1e-6));
  require_close(m, firsts, tolerance<T>(1e-6));
  require_close(v, seconds, tolerance<T>(1e-6));
}

TEST_CASE("moments that have decayed below the smallest normal number become 0, and nobody else's numbers do") {
  constexpr std::int64_t count = 37;
  constexpr float denormal = 1e-42F;
  const auto g = Tensor<float>::zeros({count});
  auto w = Tensor<float>::full({count}, 1);
  auto m = Tensor<float>::full({count}, denormal);
  auto v = Tensor<float>::full({count}, denormal);
  update_elements<AdamUpdate<float>>({.learning_rate = 0.1}, count, {g.data(), w.data(), m.data(), v.data(), nullptr});
  require_close(m, Doubles(count, 0), 0);
  require_close(v, Doubles(count, 0), 0);
  require_close(w, Doubles(count, 1), 0);
  volatile float ours = denormal;
  CHECK(ours * 0.5F > 0);
}

TEST_CASE("an update whose epsilon is 0 takes small gradients as others, and nothing where there is none") {
  constexpr std::size_t count = 37;
  const auto g = Tensor<float>::full({count}, 1e-20F);
  auto w = Tensor<float>::full({count}, 1);
  auto m = Tensor<float>::zeros({count});
  auto v = Tensor<float>::zeros({count});
  update_elements<AdamUpdate<float>>({.learning_rate = 0.1, .epsilon = 0}, count,
                                     {g.data(), w.data(), m.data(), v.data(), nullptr});
  require_close(w, Doubles(count, 0.9), 2e-2);  // a second moment of 1e-43 has few bits
  auto sums = Tensor<float>::zeros({count});
  w = Tensor<float>::full({count}, 1);
  update_elements<AdagradUpdate<float>>({.learning_rate = 0.1, .epsilon = 0}, count, {g.data(), w.data(), sums.data()});
  require_close(w, Doubles(count, 0.9), 1e-4);
  w = Tensor<float>::full({count}, 1);
  sums = Tensor<float>::zeros({count});
  update_elements<RmspropUpdate<float>>({.learning_rate = 0.1, .epsilon = 0}, count,
                                        {g.data(), w.data(), sums.data(), nullptr, nullptr});
  require_close(w, Doubles(count, 0), 2e-2);  // 0.1 / sqrt(1 - 0.99)
}

TEMPLATE_TEST_CASE("sgd with momentum, dampening, nesterov and weight decay", "", float, double) {
  using T = TestType;
  constexpr std::int64_t count = 77;
  const auto g = random_tensor<T>({count}, 1);
  for (const SgdStep& step :
       {SgdStep{.learning_rate = 0.1, .weight_decay = 0.2, .gradient_scale = 2},
        SgdStep{.learning_rate = 0.1, .momentum = 0.9, .update = 2},
        SgdStep{
            .learning_rate = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1, .update = 2, .gradient_scale = 0.5},
        SgdStep{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true, .update = 2},
        SgdStep{.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.3, .update = 1}}) {
    auto w = random_tensor<T>({count}, 2);
    auto velocity = random_tensor<T>({count}, 3);
    Doubles weights;
    Doubles velocities;
    for (std::size_t i = 0; i < count; ++i) {
      const auto old = static_cast<double>(w.span()[i]);
      const double gradient = step.gradient_scale * static_cast<double>(g.span()[i]) + step.weight_decay * old;
      double direction = gradient;
      double next = static_cast<double>(velocity.span()[i]);
      if (step.momentum != 0) {
        next = step.update == 1 ? gradient : step.momentum * next + (1 - step.dampening) * gradient;
        direction = step.nesterov ? gradient + step.momentum * next : next;
      }
      velocities.push_back(next);
      weights.push_back(old - step.learning_rate * direction);
    }
    update_elements<SgdUpdate<T>>(step, count, {g.data(), w.data(), step.momentum == 0 ? nullptr : velocity.data()});
    require_close(w, weights, tolerance<T>(1e-6));
    require_close(velocity, velocities, tolerance<T>(1e-6));
  }
}

TEST_CASE("sgd with momentum needs a buffer") {
  float weight = 0;
  const float gradient = 1;
  CHECK_THROWS_WITH(update_elements<SgdUpdate<float>>({.momentum = 0.5}, 1, {&gradient, &weight, nullptr}),
                    "sgd: the step needs a momentum buffer");
}
