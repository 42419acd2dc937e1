#include <algorithm>
#include <limits>
#include <vector>

#include "ops/compare.hpp"
#include "trireme/ops/update/adam_8bit.hpp"
#include "trireme/ops/update/each_optimizer.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/ops/update/step.hpp"

// The optimizers' passes on the GPU against those on the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

// Planes 0 (gradient), 1 (weight) and up to three of state: means of squares, 2 or more, and means, between 0 and 1, whose
// square nothing cancels.
template <typename T, typename D>
struct RandomPlanes {
  explicit RandomPlanes(std::int64_t count) {
    for (std::uint32_t seed = 0; seed < 5; ++seed) {
      Tensor<T> plane = random_tensor<T>({count}, seed);
      const T offset = seed == 2 ? 2 : 0;
      if (seed > 1) {
        std::ranges::for_each(plane.span(), [&](T& e) { e = offset + e * e / (1 + e * e); });
      }
      planes.push_back(plane.template to<D>());
    }
  }
  T* operator[](std::size_t index) const { return planes[index].data(); }

  std::vector<Tensor<T, D>> planes;
};

template <typename T, typename Pass>
void compare(const Pass& pass) {
  for (const std::int64_t count : {1, 5, 4096, 1'000'003}) {
    CAPTURE(count);
    const RandomPlanes<T, Cpu> here(count);
    const RandomPlanes<T, Cuda> there(count);
    pass(here, static_cast<std::size_t>(count), Cpu{});
    pass(there, static_cast<std::size_t>(count), Cuda{});
    for (std::size_t plane = 0; plane < here.planes.size(); ++plane) {
      CAPTURE(plane);
      require_close(there.planes[plane].template to<Cpu>(), as_doubles(here.planes[plane]), tolerance<T>(1e-5));
    }
  }
}

// Those of a part of a parameter, to which a pass adds.
template <typename D>
Tensor<UpdateSquares, D> of_a_hundred() {
  return Tensor<UpdateSquares, D>::from({1}, std::vector<UpdateSquares>{{.weight = 100, .update = 100}});
}

}  // namespace

TEMPLATE_TEST_CASE("passes of the optimizers", "", float, double) {
  using T = TestType;
  SECTION("adam") {
    for (const bool amsgrad : {false, true}) {
      compare<T>([&](const auto& p, std::size_t count, auto device) {
        const AdamStep step{.learning_rate = 0.01, .weight_decay = 0.1, .decoupled = true, .gradient_scale = 0.5};
        update_elements<AdamUpdate<T>>(step, count, {p[0], p[1], p[2], p[3], amsgrad ? p[4] : nullptr}, device);
      });
    }
  }
  SECTION("sgd") {
    for (const double momentum : {0.0, 0.9}) {
      compare<T>([&](const auto& p, std::size_t count, auto device) {
        const SgdStep step{.learning_rate = 0.1, .momentum = momentum, .weight_decay = 0.2, .nesterov = momentum > 0};
        update_elements<SgdUpdate<T>>(step, count, {p[0], p[1], momentum > 0 ? p[2] : nullptr}, device);
      });
    }
  }
  SECTION("rmsprop") {
    for (const int kept : {0, 1, 2, 3}) {
      compare<T>([&](const auto& p, std::size_t count, auto device) {
        const RmspropStep step{.learning_rate = 0.1, .momentum = kept / 2 == 0 ? 0.0 : 0.9, .weight_decay = 0.1};
        T* average = kept % 2 == 0 ? nullptr : p[3];
        T* momentum = kept / 2 == 0 ? nullptr : p[4];
        update_elements<RmspropUpdate<T>>(step, count, {p[0], p[1], p[2], average, momentum}, device);
      });
    }
  }
  SECTION("adagrad, lion") {
    compare<T>([&](const auto& p, std::size_t count, auto device) {
      update_elements<AdagradUpdate<T>>({.learning_rate = 0.1, .weight_decay = 0.1}, count, {p[0], p[1], p[2]}, device);
      update_elements<LionUpdate<T>>({.learning_rate = 0.1, .weight_decay = 0.1}, count, {p[0], p[1], p[3]}, device);
    });
  }
  SECTION("nadam, radam") {
    for (const std::int64_t update : {1, 9}) {  // RAdam adapts from the sixth on
      compare<T>([&](const auto& p, std::size_t count, auto device) {
        update_elements<NadamUpdate<T>>({.learning_rate = 0.01, .weight_decay = 0.1, .update = update}, count,
                                        {p[0], p[1], p[2], p[3]}, device);
        update_elements<RadamUpdate<T>>({.learning_rate = 0.01, .weight_decay = 0.1, .decoupled = true, .update = update},
                                        count, {p[0], p[1], p[4], p[3]}, device);
      });
    }
  }
  SECTION("adadelta") {
    compare<T>([&](const auto& p, std::size_t count, auto device) {
      update_elements<AdadeltaUpdate<T>>({.weight_decay = 0.1}, count, {p[0], p[1], p[2], p[3]}, device);
    });
  }
  SECTION("schedule-free adamw, lookahead") {
    for (const std::int64_t update : {1, 9}) {
      compare<T>([&](const auto& p, std::size_t count, auto device) {
        const ScheduleFreeAdamWStep step{.learning_rate = 0.01, .weight_decay = 0.1, .warmup = 4, .update = update};
        update_elements<ScheduleFreeAdamWUpdate<T>>(step, count, {p[0], p[1], p[4], p[2]}, device);
        update_elements<LookaheadUpdate<T>>({.share = 0.25}, count, {p[1], p[3]}, device);
      });
    }
  }
  SECTION("muon") {
    for (const bool nesterov : {false, true}) {
      compare<T>([&](const auto& p, std::size_t count, auto device) {
        update_elements<MuonMomentumUpdate<T>>({.nesterov = nesterov, .gradient_scale = 0.5}, count, {p[0], p[2], p[3]},
                                               device);
        const auto squares = of_a_hundred<decltype(device)>();
        update_elements<UnitNormUpdate<T>>({.squares = squares.data()}, count, {p[3]}, device);
        update_elements<ScaledSumUpdate<T>>({.x_factor = 2, .y_factor = -0.5}, count, {p[3], p[4]}, device);
        update_elements<MuonUpdate<T>>({.learning_rate = 0.1, .weight_decay = 0.1, .scale = 2}, count, {p[4], p[1]}, device);
      });
    }
  }
  SECTION("adafactor") {
    for (const bool adapts : {false, true}) {
      compare<T>([&](const auto& p, std::size_t count, auto device) {
        update_elements<AdafactorMeanUpdate<T>>({.factor = 0.5, .update = 3}, count, {p[2], p[3]}, device);
        update_elements<AdafactorQuotientUpdate<T>>({.factor = 0.5, .smallest = 0.1}, count, {p[2], p[3]}, device);
        update_elements<AdafactorSquareUpdate<T>>({}, count, {p[0], p[4]}, device);
        update_elements<AdafactorGradientUpdate<T>>({.gradient_scale = -2}, count, {p[0], p[2]}, device);
        update_elements<AdafactorDirectionUpdate<T>>({.epsilon = 0.5}, count, {p[2], p[4]}, device);
        const auto squares = of_a_hundred<decltype(device)>();
        const AdafactorStep step{
            .learning_rate = 0.1, .weight_decay = 0.1, .adapts = adapts, .count = 10, .squares = squares.data()};
        update_elements<AdafactorUpdate<T>>(step, count, {p[4], p[1]}, device);
      });
    }
  }
  SECTION("lars") {
    compare<T>([&](const auto& p, std::size_t count, auto device) {
      const auto squares = of_a_hundred<decltype(device)>();
      lars_squares(p[1], p[0], count, squares.data(), device);
      const LarsStep step{.learning_rate = 0.1, .weight_decay = 0.1, .trust = 0.5, .squares = squares.data()};
      update_elements<LarsUpdate<T>>(step, count, {p[0], p[1], p[4]}, device);
    });
  }
  SECTION("lamb") {
    compare<T>([&](const auto& p, std::size_t count, auto device) {
      LambStep step{.learning_rate = 0.01, .weight_decay = 0.1, .update = 3};
      const auto squares = of_a_hundred<decltype(device)>();
      lamb_moments(p[1], p[0], p[2], p[3], count, step, squares.data(), device);
      step.squares = squares.data();
      update_elements<LambUpdate<T>>(step, count, {p[2], p[3], p[1]}, device);
    });
  }
  SECTION("clipping and averages") {
    compare<T>([&](const auto& p, std::size_t count, auto device) {
      update_elements<ClipUpdate<T>>({.limit = 0.25, .gradient_scale = 0.5}, count, {p[0]}, device);
      const auto totals = Tensor<StepTotals, decltype(device)>::from({1}, std::vector<StepTotals>{{.squares = 100}});
      update_elements<ClipUpdate<T>>({.clip_norm = 0.5, .totals = totals.data(), .gradient_scale = 0.5}, count, {p[4]}, device);
      update_elements<AverageUpdate<T>>({.rate = 0.1}, count, {p[1], p[2]}, device);
    });
  }
}

TEMPLATE_TEST_CASE("8-bit AdamW on the GPU", "", float, double) {
  using T = TestType;
  const auto update = [](const auto& p, std::int64_t count, auto device) {
    using D = decltype(device);
    const auto codes = Tensor<std::uint8_t, D>::zeros({2, count});
    const auto absmax = Tensor<float, D>::zeros({2, (count + 255) / 256});
    const auto measured = Tensor<float, D>::zeros({1, 2});
    const Adam8bitPlanes<T> planes{
        p[0], p[1], codes.data(), codes.data() + count, absmax.data(), absmax.data() + (count + 255) / 256};
    for (int number = 1; number <= 2; ++number) {
      const AdamStep step{.learning_rate = 0.01, .weight_decay = 0.1, .decoupled = true, .update = number};
      const std::size_t part = std::min<std::size_t>(static_cast<std::size_t>(count), 48);
      measure_adam_8bit(step, part, planes, measured.data(), device);
      adam_8bit(step, static_cast<std::size_t>(count), planes, device);
      if (number == 1) continue;
      adam_8bit_part(step, part, planes, measured.data(), 1, device);
    }
    return absmax.template to<Cpu>();
  };
  for (const std::int64_t count : {1, 256, 1000, 100'003}) {
    CAPTURE(count);
    const RandomPlanes<T, Cpu> here(count);
    const RandomPlanes<T, Cuda> there(count);
    require_close(update(there, count, Cuda{}), as_doubles(update(here, count, Cpu{})), 1e-5);
    require_close(there.planes[1].template to<Cpu>(), as_doubles(here.planes[1]), 1e-4);
  }
}

TEST_CASE("a step that the GPU decides over is the one that the host would take, or none") {
  constexpr std::int64_t count = 4099;
  const auto state = Tensor<StepState, Cuda>::from({1}, std::vector<StepState>{{.scalars = {.learning_rate = 0.01}}});
  const auto updates = Tensor<std::int64_t, Cuda>::full({1}, 2);
  const auto used = Tensor<std::int64_t, Cuda>::full({1}, 1);
  const RandomPlanes<float, Cpu> here(count);
  const RandomPlanes<float, Cuda> there(count);
  const StepOnDevice read{.scalars = &state.data()->scalars, .updates = updates.data()};
  const auto step_there = [&](double norm) {
    decide_step({.target_weight = 1, .gradient_scale = 2, .gradient_norm = norm}, 1, state.data());
    count_updates(state.data(), used.data(), 1, updates.data());
    const AdamStep step{.learning_rate = 0.5, .weight_decay = 0.1, .on_device = read};
    update_elements<AdamUpdate<float>>(step, count, {there[0], there[1], there[2], there[3], there[4]}, Cuda{});
  };
  step_there(4);
  const AdamStep step{.learning_rate = 0.005, .weight_decay = 0.1, .update = 3, .gradient_scale = 2 / (4 + 1e-6)};
  update_elements<AdamUpdate<float>>(step, count, {here[0], here[1], here[2], here[3], here[4]}, Cpu{});
  step_there(std::numeric_limits<double>::infinity());
  CHECK(updates.item() == 3);
  CHECK(state.item().skipped == 1);
  for (std::size_t plane = 0; plane < here.planes.size(); ++plane) {
    CAPTURE(plane);
    require_close(there.planes[plane].to<Cpu>(), as_doubles(here.planes[plane]), 1e-5);
  }
}
