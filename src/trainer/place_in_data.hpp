#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "trireme/core/units.hpp"
#include "trireme/trainer/run.hpp"

namespace trireme::trainer {

// Converts between steps and the samples, tokens and epochs of a loader.
class PlaceInData {
 public:
  PlaceInData() = default;
  explicit PlaceInData(LoaderShape shape) : shape_(std::move(shape)) {}

  const LoaderShape& shape() const { return shape_; }
  std::int64_t samples_of(std::int64_t steps) const { return shape_.samples_of_steps(steps); }

  // How many times the first `steps` steps passed this amount. Not for Seconds.
  std::int64_t passed(const Amount& every, std::int64_t steps) const;

  // The fewest steps that hold this amount; nothing for Seconds.
  std::optional<std::int64_t> steps_of(const Amount& amount) const;

 private:
  void require_tokens() const;
  void require_epochs() const;

  LoaderShape shape_;
};

}  // namespace trireme::trainer
