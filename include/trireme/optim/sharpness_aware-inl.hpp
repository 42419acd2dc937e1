#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/ops/update/scaled_sum.hpp"
#include "trireme/optim/sharpness_aware.hpp"
#include "trireme/optim/summary.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

template <typename P, typename D>
SharpnessAware<P, D>::SharpnessAware(Model& model, const SharpnessAwareOptions& options)
    : store_(model.store()),
      options_(options),
      planes_(store_),
      before_(planes_.add(store_, "before", {.dtype = dtype_of<T>, .extent = Extent::trainable})) {
  require(std::isfinite(options.radius) && options.radius > 0, "the radius of SharpnessAware is finite and above 0, got {}",
          options.radius);
}

template <typename P, typename D>
bool SharpnessAware<P, D>::climb(const StepSummary& summary) {
  require(!has_climbed_, "climb() was called twice: call descend() before the next step");
  require(summary.store == 0 || summary.store == store_.serial(),
          "the step summary is that of another model than SharpnessAware's");
  const StepSummary known = read<D>(summary);
  if (!known.is_finite()) return false;
  has_climbed_ = true;
  const Range trained{0, store_.trainable_numel()};
  store_.visit(std::array{FlatStore::values_number, before_}, std::span(&trained, 1), [this](const FlatStore::Piece& piece) {
    store_.device().copy(piece.elements[1], piece.elements[0], static_cast<std::size_t>(piece.range.count()) * sizeof(T));
  });
  const double factor = options_.radius * known.gradient_scale / (known.gradient_norm + 1e-12);
  const std::shared_ptr<Shard> shard = store_.shard();
  const std::vector<Range> ranges = shard != nullptr ? shard->ranges() : std::vector<Range>{trained};
  const auto publication = shard != nullptr ? shard->publish() : nullptr;
  for (std::size_t index = 0; index < ranges.size(); ++index) {
    const auto climb = [&](const FlatStore::Piece& piece) {
      ops::update_elements<ops::ScaledSumUpdate<T>>(
          {.x_factor = factor}, static_cast<std::size_t>(piece.range.count()),
          {static_cast<const T*>(piece.elements[1]), static_cast<T*>(piece.elements[0])}, D{});
    };
    store_.visit(std::array{FlatStore::values_number, FlatStore::gradients_number}, std::span(&ranges[index], 1), climb);
    if (publication) publication->updated(index);
  }
  if (publication) publication->finish();
  store_.refresh_compute_copy();
  return true;
}

template <typename P, typename D>
void SharpnessAware<P, D>::descend() {
  if (!has_climbed_) return;
  has_climbed_ = false;
  const Range trained{0, store_.trainable_numel()};
  store_.visit(std::array{FlatStore::values_number, before_}, std::span(&trained, 1), [this](const FlatStore::Piece& piece) {
    store_.device().copy(piece.elements[0], piece.elements[1], static_cast<std::size_t>(piece.range.count()) * sizeof(T));
  });
  store_.refresh_compute_copy();
}

}  // namespace optim
}  // namespace trireme
