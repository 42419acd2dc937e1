#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

// The learning rate of step 0, 1, ...: a pure function, so that resuming needs only the step.
using LearningRate = std::function<double(std::int64_t step)>;

LearningRate constant(double base);

// Multiplies the rate by gamma every step_size steps (torch StepLR).
LearningRate step_decay(double base, std::int64_t step_size, double gamma);

// Multiplies the rate by gamma at each milestone (torch MultiStepLR).
LearningRate multi_step(double base, std::vector<std::int64_t> milestones, double gamma);

// Multiplies the rate by gamma each step (torch ExponentialLR).
LearningRate exponential(double base, double gamma);

// Half a cosine from base to minimum over `total` steps, then minimum (Loshchilov, Hutter 2017, arXiv 1608.03983). Equals torch
// CosineAnnealingLR up to `total`; torch's rate rises again afterwards.
LearningRate cosine(double base, std::int64_t total, double minimum);

// Cosine cycles of first, first * factor, ... steps (torch CosineAnnealingWarmRestarts, same paper).
LearningRate cosine_restarts(double base, std::int64_t first, std::int64_t factor, double minimum);

// Changes from base * start_factor to base * end_factor over `total` steps (torch LinearLR).
LearningRate linear(double base, double start_factor, double end_factor, std::int64_t total);

// base * (1 - step / total)^power (torch PolynomialLR).
LearningRate polynomial(double base, std::int64_t total, double power);

struct OneCycleOptions {
  double maximum = 0.1;
  std::int64_t total = 1;
  // Share of the steps in which the rate rises, in [0, 1]. If the rate rises for one step or less, it starts at maximum.
  double rising_share = 0.3;
  double first_divisor = 25;     // starts at maximum / first_divisor
  double final_divisor = 10000;  // ends at the start value / final_divisor
};
// Two half cosines (torch OneCycleLR; Smith, Topin 2018, arXiv 1708.07120).
LearningRate one_cycle(const OneCycleOptions& options);

// How the rate rises to base in the first `warmup` steps.
enum class Warmup : std::uint8_t {
  from_zero,   // base * step / warmup
  from_first,  // base * (step + 1) / warmup
  below_base,  // base * (step + 1) / (warmup + 1)
};

struct WarmupOptions {
  double base = 1e-3;
  std::int64_t warmup = 0;
  std::int64_t total = 1;
  double minimum = 0;  // held after `total` steps
  Warmup rise = Warmup::from_first;
};
LearningRate warmup_cosine(const WarmupOptions& options);  // rises, then falls by half a cosine to minimum
LearningRate warmup_linear(const WarmupOptions& options);  // rises, then falls linearly to minimum

// How a rate falls to its minimum. share: the share of the falling steps so far, from 0 to 1.
enum class Fall : std::uint8_t {
  one_minus_root,  // 1 - sqrt(share)
  line,            // 1 - share
};

struct StableOptions {
  double base = 1e-3;
  std::int64_t warmup = 0;
  std::int64_t total = 1;
  std::int64_t decay = 0;  // the last steps of `total`, in which the rate falls
  double minimum = 0;      // held after `total` steps
  Fall fall = Fall::one_minus_root;
  Warmup rise = Warmup::from_first;
};
// Rises, stays at base, and falls in the last steps. A longer run can continue from a checkpoint before the fall (WSD; Hu et
// al. 2024, arXiv 2404.06395; with a square root Haegele et al. 2024, arXiv 2405.18392).
LearningRate warmup_stable_decay(const StableOptions& options);

enum class Cycles : std::uint8_t {
  equal,    // all cycles have the same height
  halved,   // each cycle has half the height of the cycle before
  decayed,  // multiplies the height by gamma each step
};

struct CyclicOptions {
  double base = 1e-3;
  double maximum = 1e-2;
  std::int64_t rising = 2000;  // steps of a cycle
  std::int64_t falling = 0;    // 0: the same as `rising`
  Cycles cycles = Cycles::equal;
  double gamma = 1;
};
// Linear from base to maximum and back, repeatedly (torch CyclicLR; Smith 2017, arXiv 1506.01186).
LearningRate cyclic(const CyclicOptions& options);

// One of several schedules. Runs for `steps` steps, and counts them from 0. The last part has no end and ignores `steps`.
struct SchedulePart {
  LearningRate rate;
  std::int64_t steps = 0;
};
// Runs the parts one after the other (torch SequentialLR): sequential({{linear(0.1, 0, 1, 100), 100}, {exponential(0.1,
// 0.999)}}).
LearningRate sequential(std::vector<SchedulePart> parts);

// Rises from zero, then follows `cycles` whole cosine waves between base and zero over the steps up to `total`. The waves
// continue after `total` (get_cosine_schedule_with_warmup of Hugging Face transformers).
LearningRate warmup_cosine_waves(double base, std::int64_t warmup, std::int64_t total, double cycles);

// Rises to base over `warmup` steps, base * (step + 1) / warmup, then falls with 1 / sqrt(step + 1) (Vaswani et al. 2017,
// arXiv 1706.03762). `warmup` is above 0.
LearningRate inverse_square_root(double base, std::int64_t warmup);

}  // namespace optim
}  // namespace trireme
