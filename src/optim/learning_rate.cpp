#include "trireme/optim/learning_rate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::optim {
namespace {

double to_double(std::int64_t value) { return static_cast<double>(value); }

// From `begin` to `end` as share goes from 0 to 1.
double half_cosine(double begin, double end, double share) {
  return end + (begin - end) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

double risen(const WarmupOptions& options, std::int64_t step) {
  switch (options.rise) {
    case Warmup::from_zero: return options.base * to_double(step) / to_double(options.warmup);
    case Warmup::from_first: return options.base * to_double(step + 1) / to_double(options.warmup);
    case Warmup::below_base: return options.base * to_double(step + 1) / to_double(options.warmup + 1);
  }
  return options.base;
}

template <typename Fall>
LearningRate warmup_then(const WarmupOptions& options, Fall fall) {
  require(options.warmup >= 0 && options.total >= options.warmup,
          "a schedule's warm-up of {} steps must be 0 or more and not above its {} steps", options.warmup, options.total);
  return [options, fall](std::int64_t step) {
    if (step < options.warmup) return risen(options, step);
    if (step >= options.total) return options.minimum;
    return fall(to_double(step - options.warmup) / to_double(options.total - options.warmup));
  };
}

}  // namespace

LearningRate constant(double base) {
  return [=](std::int64_t) { return base; };
}

LearningRate step_decay(double base, std::int64_t step_size, double gamma) {
  require(step_size > 0, "step_decay needs a step_size above 0, got {}", step_size);
  return [=](std::int64_t step) { return base * std::pow(gamma, to_double(step / step_size)); };
}

LearningRate multi_step(double base, std::vector<std::int64_t> milestones, double gamma) {
  return [=](std::int64_t step) {
    const auto passed = std::count_if(milestones.begin(), milestones.end(), [&](std::int64_t at) { return at <= step; });
    return base * std::pow(gamma, to_double(passed));
  };
}

LearningRate exponential(double base, double gamma) {
  return [=](std::int64_t step) { return base * std::pow(gamma, to_double(step)); };
}

LearningRate cosine(double base, std::int64_t total, double minimum) {
  require(total > 0, "cosine needs a total above 0, got {}", total);
  return [=](std::int64_t step) { return half_cosine(base, minimum, to_double(std::min(step, total)) / to_double(total)); };
}

LearningRate cosine_restarts(double base, std::int64_t first, std::int64_t factor, double minimum) {
  require(first > 0 && factor > 0, "cosine_restarts needs a first cycle and a factor above 0, got {} and {}", first, factor);
  return [=](std::int64_t step) {
    std::int64_t cycle = first;
    while (step >= cycle) {
      step -= cycle;
      cycle *= factor;
    }
    return half_cosine(base, minimum, to_double(step) / to_double(cycle));
  };
}

LearningRate linear(double base, double start_factor, double end_factor, std::int64_t total) {
  require(total > 0, "linear needs a total above 0, got {}", total);
  return [=](std::int64_t step) {
    return base * std::lerp(start_factor, end_factor, to_double(std::min(step, total)) / to_double(total));
  };
}

LearningRate polynomial(double base, std::int64_t total, double power) {
  require(total > 0, "polynomial needs a total above 0, got {}", total);
  return [=](std::int64_t step) { return base * std::pow(1 - to_double(std::min(step, total)) / to_double(total), power); };
}

LearningRate one_cycle(const OneCycleOptions& options) {
  require(options.total > 1, "one_cycle needs a total above 1, got {}", options.total);
  require(options.rising_share >= 0 && options.rising_share <= 1, "one_cycle's rising_share lies in [0, 1], got {}",
          options.rising_share);
  return [options](std::int64_t step) {
    const double first = options.maximum / options.first_divisor;
    const double peak = options.rising_share * to_double(options.total) - 1;
    const double at = to_double(std::min(step, options.total - 1));
    if (peak > 0 && at <= peak) return half_cosine(first, options.maximum, at / peak);
    return half_cosine(options.maximum, first / options.final_divisor, (at - peak) / (to_double(options.total - 1) - peak));
  };
}

LearningRate warmup_cosine(const WarmupOptions& options) {
  return warmup_then(options, [=](double share) { return half_cosine(options.base, options.minimum, share); });
}

LearningRate warmup_linear(const WarmupOptions& options) {
  return warmup_then(options, [=](double share) { return std::lerp(options.base, options.minimum, share); });
}

LearningRate warmup_stable_decay(const StableOptions& options) {
  require(options.warmup >= 0 && options.decay >= 0 && options.warmup + options.decay <= options.total,
          "warmup_stable_decay's warm-up of {} steps and decay of {} are 0 or more, and together not above its {} steps",
          options.warmup, options.decay, options.total);
  return [options](std::int64_t step) {
    if (step < options.warmup) return risen({.base = options.base, .warmup = options.warmup, .rise = options.rise}, step);
    if (step >= options.total) return options.minimum;
    const std::int64_t fallen = step - (options.total - options.decay);
    if (fallen <= 0) return options.base;
    const double share = to_double(fallen) / to_double(options.decay);
    return std::lerp(options.base, options.minimum, options.fall == Fall::line ? share : std::sqrt(share));
  };
}

LearningRate cyclic(const CyclicOptions& options) {
  require(options.rising > 0 && options.falling >= 0,
          "cyclic needs rising steps above 0 and falling ones of 0 or more, got {} and {}", options.rising, options.falling);
  return [options](std::int64_t step) {
    const std::int64_t falling = options.falling > 0 ? options.falling : options.rising;
    const std::int64_t cycle = step / (options.rising + falling);
    const std::int64_t at = step % (options.rising + falling);
    double height = at <= options.rising ? to_double(at) / to_double(options.rising)
                                         : to_double(options.rising + falling - at) / to_double(falling);
    if (options.cycles == Cycles::halved) height /= std::pow(2, to_double(cycle));
    if (options.cycles == Cycles::decayed) height *= std::pow(options.gamma, to_double(step));
    return std::lerp(options.base, options.maximum, height);
  };
}

LearningRate sequential(std::vector<SchedulePart> parts) {
  require(!parts.empty(), "sequential needs a schedule");
  for (std::size_t index = 0; index < parts.size(); ++index) {
    require(parts[index].rate != nullptr, "schedule {} of sequential is empty", index);
    require(parts[index].steps >= 0, "schedule {} of sequential has {} steps: 0 or more are needed", index, parts[index].steps);
  }
  return [parts = std::move(parts)](std::int64_t step) {
    for (std::size_t index = 0; index + 1 < parts.size(); ++index) {
      if (step < parts[index].steps) return parts[index].rate(step);
      step -= parts[index].steps;
    }
    return parts.back().rate(step);
  };
}

LearningRate warmup_cosine_waves(double base, std::int64_t warmup, std::int64_t total, double cycles) {
  require(warmup >= 0 && total > warmup, "warmup_cosine_waves needs a warm-up of {} steps to be below its {} steps", warmup,
          total);
  return [=](std::int64_t step) {
    if (step < warmup) return base * to_double(step) / to_double(warmup);
    return half_cosine(base, 0, 2 * cycles * to_double(step - warmup) / to_double(total - warmup));
  };
}

LearningRate inverse_square_root(double base, std::int64_t warmup) {
  require(warmup > 0, "inverse_square_root needs a warm-up above 0, got {}", warmup);
  return [=](std::int64_t step) {
    const double share = to_double(step + 1) / to_double(warmup);
    return base * std::min(share, 1 / std::sqrt(share));
  };
}

}  // namespace trireme::optim
