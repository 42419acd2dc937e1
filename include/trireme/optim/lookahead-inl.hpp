#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/device/graph.hpp"
#include "trireme/ops/update/lookahead.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/optim/lookahead.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

template <typename P, typename D>
Lookahead<P, D>::Lookahead(Model& model, AnyOptimizer& inside, const LookaheadOptions& options)
    : store_(model.store()),
      inside_(inside),
      options_(options),
      planes_(store_),
      slow_(planes_.add(store_, "slow", {.dtype = dtype_of<T>, .extent = Extent::trainable})) {
  require(options.interval > 0, "Lookahead's interval is above 0, got {}", options.interval);
  require(options.share > 0 && options.share <= 1, "Lookahead's share lies in (0, 1], got {}", options.share);
}

template <typename P, typename D>
template <typename Action>
void Lookahead<P, D>::visit(const Action& action) const {
  const Range trained{0, store_.trainable_numel()};
  store_.visit(std::array{FlatStore::values_number, slow_}, std::span(&trained, 1), [&](const FlatStore::Piece& piece) {
    action(static_cast<T*>(piece.elements[0]), static_cast<T*>(piece.elements[1]),
           static_cast<std::size_t>(piece.range.count()));
  });
}

template <typename P, typename D>
void Lookahead<P, D>::check(const StepSummary& summary) const {
  inside_.check(summary);
  require(summary.store == 0 || summary.store == store_.serial(),
          "Lookahead and the optimizer inside it are of two models: give both the model that is trained");
}

template <typename P, typename D>
bool Lookahead<P, D>::step(const StepSummary& summary, const UpdateOptions& options) {
  if constexpr (!Tensor<T, D>::on_host) device::require_not_capturing("a step of Lookahead, which the host counts,");
  check(summary);
  if (steps_ < 0) {
    visit([this](const T* values, T* slow, std::size_t count) { store_.device().copy(slow, values, count * sizeof(T)); });
    steps_ = 0;
  }
  if (!inside_.step(summary, options)) return false;
  if (++steps_ < options_.interval) return true;
  steps_ = 0;
  visit([this](T* values, T* slow, std::size_t count) {
    ops::update_elements<ops::LookaheadUpdate<T>>({.share = options_.share}, count, {values, slow}, D{});
  });
  store_.refresh_compute_copy();
  return true;
}

template <typename P, typename D>
Settings Lookahead<P, D>::settings() const {
  Settings settings = inside_.settings();
  settings.emplace_back("lookahead", fmt::format("a share of {} every {} steps", options_.share, options_.interval));
  return settings;
}

template <typename P, typename D>
void Lookahead<P, D>::add_to(State& state, const std::string& prefix) {
  inside_.add_to(state, prefix);
  void* place = store_.list_plane(state, slow_);
  state.add(prefix + "lookahead_steps", &steps_);
  for (int index = 0; index < store_.num_parameters(); ++index) {
    const ParameterInfo& parameter = store_.parameter(index);
    if (!parameter.trainable) continue;
    state.add(store_.listed(prefix + "slow." + parameter.name, slow_, place, index));
  }
}

}  // namespace optim
}  // namespace trireme
