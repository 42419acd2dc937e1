#include "trainer/place_in_data.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "trireme/core/error.hpp"

namespace trireme::trainer {

void PlaceInData::require_tokens() const {
  require(shape_.tokens_per_sample > 0, "the loader of this run reads no tokens: use samples or epochs");
}

void PlaceInData::require_epochs() const {
  require(shape_.samples_per_epoch > 0, "the loader of this run has no samples in an epoch: use steps");
}

std::int64_t PlaceInData::passed(const Amount& every, std::int64_t steps) const {
  if (const auto* each = std::get_if<Steps>(&every)) return steps / each->count;
  if (const auto* each = std::get_if<Samples>(&every)) return samples_of(steps) / each->count;
  if (const auto* each = std::get_if<Tokens>(&every)) {
    require_tokens();
    return samples_of(steps) * shape_.tokens_per_sample / each->count;
  }
  require_epochs();
  const double samples = std::max(1.0, std::get<Epochs>(every).count * static_cast<double>(shape_.samples_per_epoch));
  return static_cast<std::int64_t>(std::floor(static_cast<double>(samples_of(steps)) / samples));
}

std::optional<std::int64_t> PlaceInData::steps_of(const Amount& amount) const {
  const auto of_samples = [&](double samples) {
    require(samples < 9e15, "{} are more samples than a run can count", to_text(amount));
    return shape_.steps_of_samples(static_cast<std::int64_t>(std::ceil(samples)));
  };
  if (const auto* steps = std::get_if<Steps>(&amount)) return steps->count;
  if (const auto* samples = std::get_if<Samples>(&amount)) return of_samples(static_cast<double>(samples->count));
  if (const auto* tokens = std::get_if<Tokens>(&amount)) {
    require_tokens();
    return of_samples(static_cast<double>(tokens->count) / static_cast<double>(shape_.tokens_per_sample));
  }
  if (const auto* epochs = std::get_if<Epochs>(&amount)) {
    require_epochs();
    return of_samples(epochs->count * static_cast<double>(shape_.samples_per_epoch));
  }
  return std::nullopt;
}

}  // namespace trireme::trainer
