#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "trireme/core/units.hpp"
#include "trireme/trainer/run.hpp"

namespace trireme::trainer {

// What so many steps are in samples, tokens and epochs of a loader, and the other way round.
class PlaceInData {
 public:
  PlaceInData() = default;
  explicit PlaceInData(LoaderShape shape) : shape_(std::move(shape)) {}

  const LoaderShape& shape() const { return shape_; }
  std::int64_t samples_of(std::int64_t steps) const { return shape_.samples_of_steps(steps); }

  // How often this much was passed in the first `steps` steps; not of Seconds.
  std::int64_t passed(const Amount& every, std::int64_t steps) const;

  // The fewest steps that hold this much; nothing for Seconds, of which only the clock knows.
  std::optional<std::int64_t> steps_of(const Amount& amount) const;

 private:
  void require_tokens() const;
  void require_epochs() const;

  LoaderShape shape_;
};

}  // namespace trireme::trainer
