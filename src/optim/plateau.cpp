#include "trireme/optim/plateau.hpp"

#include <algorithm>
#include <cmath>

#include "trireme/core/error.hpp"

namespace trireme::optim {

Plateau::Plateau(const PlateauOptions& options) : options_(options) {
  require(options.factor >= 0 && options.factor < 1, "a plateau's factor lies in [0, 1), got {}", options.factor);
  require(options.patience >= 0 && options.cooldown >= 0, "a plateau's patience and cooldown are 0 or more, got {} and {}",
          options.patience, options.cooldown);
  require(std::isfinite(options.threshold) && options.threshold >= 0, "a plateau's threshold is finite and 0 or more, got {}",
          options.threshold);
  require(options.minimum >= 0 && options.minimum <= 1, "a plateau's minimum lies in [0, 1], got {}", options.minimum);
}

bool Plateau::improves(double result) const {
  if (!std::isfinite(result)) return false;
  if (has_best_ == 0) return true;
  const double threshold = options_.relative ? options_.threshold * std::abs(best_) : options_.threshold;
  return options_.maximize ? result > best_ + threshold : result < best_ - threshold;
}

bool Plateau::update(double result) {
  if (improves(result)) {
    best_ = result;
    has_best_ = 1;
    without_improvement_ = 0;
  } else {
    ++without_improvement_;
  }
  if (cooling_ > 0) {
    --cooling_;
    without_improvement_ = 0;
  }
  if (without_improvement_ <= options_.patience) return false;
  without_improvement_ = 0;
  cooling_ = options_.cooldown;
  const double before = factor_;
  factor_ = std::max(factor_ * options_.factor, options_.minimum);
  return factor_ < before;
}

void Plateau::add_to(State& state, const std::string& prefix) {
  state.add(prefix + "factor", &factor_);
  state.add(prefix + "best", &best_);
  state.add(prefix + "has_best", &has_best_);
  state.add(prefix + "without_improvement", &without_improvement_);
  state.add(prefix + "cooling", &cooling_);
}

}  // namespace trireme::optim
