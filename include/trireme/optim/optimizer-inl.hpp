#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/device/graph.hpp"
#include "trireme/ops/update/clip.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/optim/diverged.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/optim/summary.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {
template <typename P, typename D>
Optimizer<P, D>::Optimizer(Model& model, const ParameterRules& rules, Needs needs)
    : model_(model),
      store_(model.store()),
      planes_(store_),
      visited_{FlatStore::values_number, FlatStore::gradients_number},
      rules_(rules),
      needs_(needs),
      resolved_(resolve(rules, store_)),
      group_norms_(model, rules, resolved_),
      steps_(static_cast<std::size_t>(store_.num_parameters()), 0) {
  if constexpr (!on_host) on_device_.emplace(store_, rules.learning_rate);
  const device::MemoryPurpose purpose("state of the optimizer");
  if (needs == Needs::parameter_norms) squares_ = Tensor<ops::UpdateSquares, D>({store_.num_parameters() + 1});
}

template <typename P, typename D>
int Optimizer<P, D>::add_plane(std::string name, double value, Home home) {
  require(!has_memory_, "plane {} was added after the optimizer's first step or checkpoint: add it in the constructor", name);
  require(name != "step",
          "a plane of an optimizer can't be named step: checkpoints keep the counts of updates under that name");
  const PlaneOptions options{.dtype = dtype_of<T>, .extent = Extent::shard, .home = home, .initial = value};
  visited_.push_back(planes_.add(store_, std::move(name), options));
  return static_cast<int>(planes_.numbers().size()) - 1;
}

// Called at the first use. Afterwards the ranges that this rank updates cannot change.
template <typename P, typename D>
void Optimizer<P, D>::make_planes() {
  require(!has_memory_ || store_.shard() == shard_,
          "DataParallel was made after the first step of the optimizer, or after a State got the optimizer's planes, and "
          "shards the optimizer's work over the ranks: make DataParallel before");
  if (has_memory_) return;
  const std::shared_ptr<Shard> shard = store_.shard();
  require(needs_ != Needs::parameter_norms || shard == nullptr || !shard->fixed_bits(),
          "with FixedBits the norms of parameters that several ranks update would depend on the number of ranks: train with "
          "Sharding::none if you use LAMB, LARS or other optimizers that need these norms");
  for (const int plane : planes_.numbers()) store_.plane(plane);
  shard_ = shard;
  has_memory_ = true;
}

template <typename P, typename D>
void Optimizer<P, D>::set_learning_rate(double learning_rate) {
  require(std::isfinite(learning_rate) && learning_rate >= 0, "a learning rate is finite and 0 or more, got {}", learning_rate);
  rules_.learning_rate = learning_rate;
  if constexpr (!on_host) on_device_->set_learning_rate(learning_rate);
}

template <typename P, typename D>
void Optimizer<P, D>::check(const StepSummary& summary) const {
  require(summary.used.size() == steps_.size(), "a step summary of {} parameters for an optimizer of {}", summary.used.size(),
          steps_.size());
  require(summary.store == 0 || summary.store == store_.serial(),
          "the step summary is that of another model; this optimizer's model begins with {}: give each optimizer the summary "
          "of its own model's step",
          store_.num_parameters() > 0 ? store_.parameter(0).name : "");
}

template <typename P, typename D>
bool Optimizer<P, D>::step(const StepSummary& summary, const UpdateOptions& options) {
  check(summary);
  require(options.clip_norm >= 0 && options.clip_value >= 0, "clip_norm and clip_value are 0 or more, got {} and {}",
          options.clip_norm, options.clip_value);
  require(options.max_skipped >= 0, "max_skipped is 0 or more, got {}", options.max_skipped);
  require_trained_values();
  if (options.learning_rate) set_learning_rate(*options.learning_rate);
  make_planes();
  store_.require_values();
  const StepSummary decided = decidable(summary);
  if (!decided.on_device && !decided.is_finite()) {
    leave_out(decided, options);
    return false;
  }
  skipped_in_a_row_ = 0;
  if (decided.on_device || decided.target_weight > 0) update_parameters(decided, options);
  store_.clear_gradients();
  return true;
}

template <typename P, typename D>
StepSummary Optimizer<P, D>::decidable(StepSummary summary) const {
  const bool can_restore = store_.buffers().size() == 0 || store_.buffers().are_kept();
  return !on_host && can_restore ? summary : read<D>(std::move(summary));
}

template <typename P, typename D>
void Optimizer<P, D>::update_parameters(const StepSummary& summary, const UpdateOptions& options) {
  Scaling scaling = begin_updates(summary, options);
  const std::vector<Range> ranges = own_ranges();
  if (clips_elements(options)) {
    clip(ranges, summary, scaling, options);
    scaling = {.done = true};
  }
  if (needs_ == Needs::parameter_norms) measure_parameters(ranges, summary, scaling);
  if (needs_ == Needs::whole_parameters) {
    update_whole_parameters(ranges, summary, scaling);
  } else {
    prepare([&](const Range& range, const std::function<void(const Piece&)>& action) {
      visit_pieces(range, summary, scaling, [&](const Piece& piece, int) { action(piece); });
    });
    change_pieces(ranges, summary, scaling, [this](const Piece& piece) { update(piece); });
  }
}

// Updates one parameter after the other, then sends the results to all ranks.
template <typename P, typename D>
void Optimizer<P, D>::update_whole_parameters(const std::vector<Range>& ranges, const StepSummary& summary,
                                              const Scaling& scaling) {
  for (const int index : store_.layout()) {
    const ParameterInfo& info = store_.parameter(index);
    if (!info.trainable || !summary.used[static_cast<std::size_t>(index)] || info.numel == 0) continue;
    const Range all{info.offset, info.offset + info.numel};
    const auto first = std::ranges::partition_point(ranges, [&](const Range& range) { return range.end <= all.begin; });
    const auto visit = [&](const std::function<void(const Piece&)>& action) {
      for (auto range = first; range != ranges.end() && range->begin < all.end; ++range) {
        const Range part{std::max(range->begin, all.begin), std::min(range->end, all.end)};
        visit_pieces(part, summary, scaling, [&](const Piece& piece, int) { action(piece); });
      }
    };
    const auto at = static_cast<std::size_t>(index);
    update_parameter({.index = index,
                      .info = info,
                      .adapts = resolved_[at].adapts,
                      .step = steps_[at],
                      .on_device = place_of(index, scaling),
                      .visit = visit});
  }
  if (!shard_) {
    for (const Range& range : ranges) store_.refresh_compute_copy(range);
    return;
  }
  const auto publication = shard_->publish();
  for (std::size_t index = 0; index < ranges.size(); ++index) publication->updated(index);
  publication->finish();
}

// Changes the pieces and sends the results to all ranks: sends one range while it changes the next.
template <typename P, typename D>
void Optimizer<P, D>::change_pieces(const std::vector<Range>& ranges, const StepSummary& summary, const Scaling& scaling,
                                    const std::function<void(const Piece&)>& change) {
  const auto publication = shard_ ? shard_->publish() : nullptr;
  for (std::size_t index = 0; index < ranges.size(); ++index) {
    visit_pieces(ranges[index], summary, scaling, [&](const Piece& piece, int) {
      change(piece);
      if (!shard_) store_.refresh_compute_copy(piece.range);
    });
    if (publication) publication->updated(index);
  }
  if (publication) publication->finish();
}

template <typename P, typename D>
void Optimizer<P, D>::rewrite_values(const std::function<void(const Piece&)>& change) {
  make_planes();
  StepSummary all;
  for (int index = 0; index < store_.num_parameters(); ++index) {
    all.used.push_back(store_.parameter(index).trainable);
    if (all.used.back()) store_.count_change(index);
  }
  change_pieces(own_ranges(), all, {}, change);
}

// Counts the update of every parameter in use.
template <typename P, typename D>
auto Optimizer<P, D>::begin_updates(const StepSummary& summary, const UpdateOptions& options) -> Scaling {
  std::vector<bool> used = summary.used;
  for (const int index : store_.layout()) {
    if (!store_.parameter(index).trainable) used[static_cast<std::size_t>(index)] = false;
  }
  for (std::size_t parameter = 0; parameter < used.size(); ++parameter) {
    const bool stays = rules_.learning_rate * learning_rate_factor(rules_, resolved_[parameter], summary.step) == 0;
    if (used[parameter] && !stays) store_.count_change(static_cast<int>(parameter));
  }
  const double clip_norm = group_norms_.are_needed() ? 0 : options.clip_norm;  // clip() applies it
  if constexpr (!on_host) {
    const bool scheduled =
        std::ranges::any_of(rules_.groups, [](const ParameterGroup& group) { return group.schedule != nullptr; });
    if (scheduled) device::require_not_capturing("an update with the schedule of a parameter group");
    on_device_->begin(summary, clip_norm, used);
    return {};
  } else {
    for (std::size_t parameter = 0; parameter < used.size(); ++parameter) steps_[parameter] += used[parameter] ? 1 : 0;
    const double clip = clip_norm > 0 ? std::min(1.0, clip_norm / (summary.gradient_norm + 1e-6)) : 1.0;
    return {.scale = summary.gradient_scale * clip};
  }
}

// Whether gradients are clipped in a pass of their own.
template <typename P, typename D>
bool Optimizer<P, D>::clips_elements(const UpdateOptions& options) const {
  const auto clips = [](const ParameterGroup& group) { return group.clip_value.value_or(0) > 0; };
  return group_norms_.are_needed() || options.clip_value > 0 || std::ranges::any_of(rules_.groups, clips);
}

template <typename P, typename D>
void Optimizer<P, D>::clip(const std::vector<Range>& ranges, const StepSummary& summary, const Scaling& scaling,
                           const UpdateOptions& options) {
  group_norms_.measure(ranges, summary.used);
  T* all = store_.template gradients<T, D>().data();
  for (const Range& range : ranges) {
    visit_pieces(range, summary, scaling, [&](const Piece& piece, int parameter) {
      const ResolvedRule& rule = rule_of(parameter);
      ops::ClipStep step{.totals = group_norms_.of(rule), .gradient_scale = scaling.scale, .on_device = piece.on_device};
      if (group_norms_.are_needed()) step.clip_norm = rule.clip_norm.value_or(options.clip_norm);
      if (const double limit = rule.clip_value.value_or(options.clip_value); limit > 0) step.limit = limit;
      ops::update_elements<ops::ClipUpdate<T>>(step, piece.count, {all + piece.range.begin}, D{});
    });
  }
}

template <typename P, typename D>
void Optimizer<P, D>::skip_step() {
  store_.buffers().restore();
  store_.clear_gradients();
  ++skipped_steps_;
}

template <typename P, typename D>
std::int64_t Optimizer<P, D>::skipped_steps() {
  if constexpr (!on_host) skipped_steps_ += on_device_->take_skipped();
  return skipped_steps_;
}

template <typename P, typename D>
void Optimizer<P, D>::leave_out(const StepSummary& summary, const UpdateOptions& options) {
  skip_step();
  ++skipped_in_a_row_;
  if (options.non_finite == NonFinitePolicy::stop || skipped_in_a_row_ > options.max_skipped) {
    throw diverged(summary, skipped_in_a_row_);
  }
}

template <typename P, typename D>
std::vector<Range> Optimizer<P, D>::own_ranges() const {
  if (shard_) return shard_->ranges();
  return {{0, store_.trainable_numel()}};
}

template <typename P, typename D>
void Optimizer<P, D>::add_to(State& state, const std::string& prefix) {
  require_trained_values();
  make_planes();
  std::vector<void*> places;  // by plane
  for (const int plane : planes_.numbers()) places.push_back(store_.list_plane(state, plane));
  state.before_use([this] {
    require_trained_values();
    skipped_steps();
  });
  state.add(prefix + "skipped_steps", &skipped_steps_);
  state.add(prefix + "skipped_in_a_row", &skipped_in_a_row_);
  if constexpr (!on_host) on_device_->add_to(state, prefix);
  add_more_to(state, prefix);
  for (int index = 0; index < store_.num_parameters(); ++index) {
    const ParameterInfo& parameter = store_.parameter(index);
    if (!parameter.trainable) continue;
    if constexpr (on_host)
      state.add(fmt::format("{}step.{}", prefix, parameter.name), &steps_[static_cast<std::size_t>(index)]);
    for (std::size_t plane = 0; plane < places.size(); ++plane) {
      const int number = planes_.numbers()[plane];
      const std::string name = fmt::format("{}{}.{}", prefix, store_.planes()->name(number), parameter.name);
      state.add(store_.listed(name, number, places[plane], index));
    }
  }
}

// Makes one sum over the ranks for all parameters. For parameters that are not split over the tensor or expert axis, only the
// first rank of the axis contributes.
template <typename P, typename D>
void Optimizer<P, D>::measure_parameters(const std::vector<Range>& ranges, const StepSummary& summary, const Scaling& scaling) {
  const Axis& axis = model_.context().parts();
  const int none = store_.num_parameters();
  store_.device().zero(squares_.data(), squares_.span().size_bytes());
  for (const Range& range : ranges) {
    visit_pieces(range, summary, scaling, [&](Piece& piece, int parameter) {
      const bool counts = axis == nullptr || axis->rank() == 0 || store_.parameter(parameter).placement.split();
      if (!counts) piece.squares = squares_.data() + none;
      measure(piece);
    });
  }
  static_assert(sizeof(ops::UpdateSquares) == 2 * sizeof(double));
  const std::span sums(&squares_.data()->weight, 2 * static_cast<std::size_t>(none));
  if (shard_) shard_->sum_over_ranks(sums);
  if (axis != nullptr) axis->all_reduce(sums, ReduceOp::sum, "parameter norms").wait_on_stream();
}

template <typename P, typename D>
bool Optimizer<P, D>::same_updates(int first, int second) const {
  if constexpr (!on_host) return on_device_->same_updates(first, second);
  return steps_[static_cast<std::size_t>(first)] == steps_[static_cast<std::size_t>(second)];
}

template <typename P, typename D>
ops::StepOnDevice Optimizer<P, D>::place_of(int parameter, const Scaling& scaling) const {
  if constexpr (!on_host) return on_device_->of(parameter, scaling.done);
  return {};
}

template <typename P, typename D>
void Optimizer<P, D>::visit_pieces(const Range& range, const StepSummary& summary, const Scaling& scaling,
                                   const Visit& visit) const {
  store_.visit(visited_, std::span(&range, 1),
               [&](const FlatStore::Piece& piece) { cut_by_rules(piece, summary, scaling, visit); });
}

// A piece ends where the parameters' rules or number of updates change; gaps hold zeros and stay zero.
template <typename P, typename D>
void Optimizer<P, D>::cut_by_rules(const FlatStore::Piece& whole, const StepSummary& summary, const Scaling& scaling,
                                   const Visit& visit) const {
  const Range& range = whole.range;
  T* values = static_cast<T*>(whole.elements[0]);
  const T* gradients = static_cast<const T*>(whole.elements[1]);
  Piece piece{};
  int run_parameter = -1;
  const auto flush = [&] {
    if (piece.count > 0) visit(piece, run_parameter);
    piece.count = 0;
  };
  const auto continues = [&](int parameter) {
    return needs_ == Needs::nothing && same_updates(run_parameter, parameter) &&
           resolved_[static_cast<std::size_t>(run_parameter)] == resolved_[static_cast<std::size_t>(parameter)];
  };
  const auto layout = store_.layout();
  const auto first = std::ranges::partition_point(layout, [&](int index) {
    const ParameterInfo& parameter = store_.parameter(index);
    return parameter.offset + parameter.numel <= range.begin;
  });
  for (auto place = first; place != layout.end(); ++place) {
    const ParameterInfo& parameter = store_.parameter(*place);
    const std::int64_t begin = std::max(parameter.offset, range.begin);
    const std::int64_t end = std::min(parameter.offset + parameter.numel, range.end);
    if (begin >= range.end) break;
    const auto index = static_cast<std::size_t>(*place);
    if (!parameter.trainable || !summary.used[index]) {
      flush();
      continue;
    }
    if (piece.count > 0 && !continues(*place)) flush();
    if (piece.count == 0) {
      const ResolvedRule& rule = resolved_[index];
      run_parameter = *place;
      const std::int64_t offset = begin - range.begin;
      piece = {.range = {begin, begin},
               .values = values + offset,
               .gradients = gradients + offset,
               .count = 0,
               .planes = whole.elements.subspan(2),
               .offset = offset,
               .on_device = place_of(*place, scaling),
               .learning_rate = (on_host ? rules_.learning_rate : 1) * learning_rate_factor(rules_, rule, summary.step),
               .gradient_scale = scaling.scale,
               .weight_decay = rule.weight_decay,
               .beta1 = rule.beta1,
               .beta2 = rule.beta2,
               .adapts = rule.adapts,
               .step = steps_[index],
               .squares = needs_ == Needs::parameter_norms ? squares_.data() + *place : nullptr};
    }
    piece.range.end = end;
    piece.count = static_cast<std::size_t>(piece.range.count());
  }
  flush();
}

template <typename P, typename D>
Settings Optimizer<P, D>::settings_of(const std::string& name, const Settings& options) const {
  Settings settings{{"optimizer", name},
                    {"learning_rate", rules_.learning_rate},
                    {"weight_decay", rules_.weight_decay},
                    {"decay", rules_.decay == Decay::all ? "all" : "matrices"}};
  settings.insert(settings.end(), options.begin(), options.end());
  for (const ParameterGroup& group : rules_.groups) settings.emplace_back("group " + group.pattern, to_text(group));
  return settings;
}

}  // namespace optim
}  // namespace trireme
