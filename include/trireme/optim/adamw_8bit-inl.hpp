#pragma once

#include <algorithm>
#include <array>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/optim/adamw_8bit.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

template <typename P, typename D>
AdamW8bit<P, D>::AdamW8bit(Model& model, const AdamW8bitOptions& options)
    : Optimizer<P, D>(model, {.learning_rate = options.learning_rate,
                              .weight_decay = options.weight_decay,
                              .decay = options.decay,
                              .groups = options.groups,
                              .beta1 = options.beta1,
                              .beta2 = options.beta2,
                              .quantizes = true}),
      store_(model.store()),
      options_(options) {
  require_betas("8-bit AdamW", options.beta1, options.beta2);
  require(options.epsilon >= 0 && options.min_8bit_size >= 0,
          "8-bit AdamW's epsilon and min_8bit_size are 0 or more, got {} and {}", options.epsilon, options.min_8bit_size);
  for (int index = 0; index < store_.num_parameters(); ++index) {
    const ParameterInfo& info = store_.parameter(index);
    require(!is_8bit(index) || !info.placement.split(),
            "8-bit AdamW needs whole parameters, so that blocks do not depend on the ranks; a tensor or expert axis splits "
            "{}: train without these axes, or give it a group with full_precision",
            info.name);
  }
}

template <typename P, typename D>
bool AdamW8bit<P, D>::is_8bit(int parameter) const {
  const ParameterInfo& info = store_.parameter(parameter);
  return info.trainable && !this->rule_of(parameter).full_precision && info.placement.shape.numel() >= options_.min_8bit_size;
}

template <typename P, typename D>
std::int64_t AdamW8bit<P, D>::blocks_of(int parameter) const {
  return (store_.parameter(parameter).numel + ops::block_of_8bit - 1) / ops::block_of_8bit;
}

// Called at the first use, because the ranges that this rank updates are not known earlier.
template <typename P, typename D>
void AdamW8bit<P, D>::make_state() {
  if (has_state_) return;
  const auto& shard = store_.shard();
  const std::vector<Range> own = shard ? shard->ranges() : std::vector<Range>{{0, store_.trainable_numel()}};
  std::int64_t pairs = 0;
  auto next = own.begin();
  for (const int index : store_.layout()) {
    const ParameterInfo& info = store_.parameter(index);
    if (!info.trainable) break;  // frozen parameters come last
    const Range all{info.offset, info.offset + info.numel};
    const std::vector<Shared> shared = is_8bit(index) ? shared_blocks(index, pairs) : std::vector<Shared>{};
    while (next != own.end() && next->end <= all.begin) ++next;
    for (auto range = next; range != own.end() && range->begin < all.end; ++range) {
      const Range here{std::max(range->begin, all.begin), std::min(range->end, all.end)};
      if (here.count() > 0) add_runs(index, here, shared);
    }
  }
  const device::MemoryPurpose purpose("state of the optimizer");
  first_moment_ = Tensor<T, D>::zeros({num_moments_});
  second_moment_ = Tensor<T, D>::zeros({num_moments_});
  first_codes_ = Tensor<std::uint8_t, D>::zeros({num_codes_});
  second_codes_ = Tensor<std::uint8_t, D>::zeros({num_codes_});
  first_absmax_ = Tensor<float, D>::zeros({num_blocks_});
  second_absmax_ = Tensor<float, D>::zeros({num_blocks_});
  measured_ = Tensor<float, D>::zeros({pairs, 2});
  has_state_ = true;
}

template <typename P, typename D>
auto AdamW8bit<P, D>::shared_blocks(int parameter, std::int64_t& pairs) const -> std::vector<Shared> {
  if (!store_.shard()) return {};
  const ParameterInfo& info = store_.parameter(parameter);
  const std::vector<std::int64_t>& bounds = store_.shard()->bounds();
  std::vector<Shared> shared;
  for (auto bound = std::ranges::upper_bound(bounds, info.offset); bound != bounds.end() && *bound < info.offset + info.numel;
       ++bound) {
    const std::int64_t inside = (*bound - info.offset) % ops::block_of_8bit;
    if (inside == 0) continue;
    const std::int64_t begin = *bound - inside;
    if (shared.empty() || shared.back().block.begin != begin) {
      const std::int64_t end = std::min(begin + ops::block_of_8bit, info.offset + info.numel);
      shared.push_back({.block = {begin, end}, .begins = {begin}, .first_pair = pairs++});
    }
    shared.back().begins.push_back(*bound);
    ++pairs;
  }
  return shared;
}

template <typename P, typename D>
void AdamW8bit<P, D>::add_runs(int parameter, const Range& own, const std::vector<Shared>& shared) {
  const auto add = [&](Run run, std::int64_t& count) {
    run.place = (count + 63) / 64 * 64;  // whole vectors
    count = run.place + run.range.count();
    runs_.push_back(run);
  };
  if (!is_8bit(parameter)) {
    // Neighbouring runs stay neighbours, with their gap, so that one pass updates them.
    const bool follows = !runs_.empty() && runs_.back().kind == Kind::full && own.begin - runs_.back().range.end < 64;
    num_moments_ = follows ? num_moments_ + own.begin - runs_.back().range.end : (num_moments_ + 63) / 64 * 64;
    runs_.push_back({.parameter = parameter, .range = own, .kind = Kind::full, .place = num_moments_});
    num_moments_ += own.count();
    return;
  }
  const std::int64_t offset = store_.parameter(parameter).offset;
  Range rest = own;
  while (rest.count() > 0) {
    const auto next = std::ranges::partition_point(shared, [&](const Shared& each) { return each.block.end <= rest.begin; });
    Run run{.parameter = parameter, .range = rest, .kind = Kind::blocks, .place = 0, .block = num_blocks_};
    if (next != shared.end() && next->block.begin <= rest.begin) {
      run = part_of(parameter, rest, *next);
    } else if (next != shared.end()) {
      run.range.end = std::min(rest.end, next->block.begin);
    }
    const std::int64_t blocks = (run.range.count() + ops::block_of_8bit - 1) / ops::block_of_8bit;
    const bool is_whole =
        (run.range.begin - offset) % ops::block_of_8bit == 0 &&
        (run.range.count() % ops::block_of_8bit == 0 || run.range.end == offset + store_.parameter(parameter).numel);
    require(run.kind == Kind::part || is_whole,
            "8-bit AdamW: this rank's elements [{}, {}) of {} are not whole blocks, and bounds() of the store's shard does not "
            "list where they begin and end",
            run.range.begin - offset, run.range.end - offset, store_.parameter(parameter).name);
    add(run, num_codes_);
    num_blocks_ += blocks;
    rest.begin = run.range.end;
  }
}

template <typename P, typename D>
auto AdamW8bit<P, D>::part_of(int parameter, const Range& own, const Shared& shared) const -> Run {
  const auto next = std::ranges::upper_bound(shared.begins, own.begin);
  const std::int64_t part = next - shared.begins.begin() - 1;
  const Range range{own.begin, next == shared.begins.end() ? shared.block.end : *next};
  require(
      shared.begins[static_cast<std::size_t>(part)] == range.begin && range.end <= own.end,
      "8-bit AdamW: this rank's elements [{}, {}) of the store begin or end at a place that the shard's bounds() does not list",
      own.begin, own.end);
  return {.parameter = parameter,
          .range = range,
          .kind = Kind::part,
          .place = 0,
          .block = num_blocks_,
          .first_pair = shared.first_pair,
          .pairs = static_cast<std::int64_t>(shared.begins.size()),
          .own_pair = shared.first_pair + part};
}

template <typename P, typename D>
ops::AdamStep AdamW8bit<P, D>::step_of(const Piece& piece) const {
  return {.learning_rate = piece.learning_rate,
          .beta1 = piece.beta1,
          .beta2 = piece.beta2,
          .epsilon = options_.epsilon,
          .weight_decay = piece.weight_decay,
          .decoupled = true,
          .update = piece.step,
          .gradient_scale = options_.maximize ? -piece.gradient_scale : piece.gradient_scale,
          .on_device = piece.on_device};
}

template <typename P, typename D>
auto AdamW8bit<P, D>::planes_of(const Run& run, const Piece& piece) const -> ops::Adam8bitPlanes<T> {
  const std::int64_t first = run.range.begin - piece.range.begin;
  return {.gradient = piece.gradients + first,
          .weight = piece.values + first,
          .first_codes = first_codes_.data() + run.place,
          .second_codes = second_codes_.data() + run.place,
          .first_absmax = first_absmax_.data() + run.block,
          .second_absmax = second_absmax_.data() + run.block};
}

// Finds the largest magnitudes in blocks that lie in several ranges. This takes one sum over the ranks, to which each rank
// contributes its own values and zeros for the other ranks.
template <typename P, typename D>
void AdamW8bit<P, D>::prepare(const Look& look) {
  make_state();
  if (measured_.numel() == 0) return;
  store_.device().zero(measured_.data(), measured_.span().size_bytes());
  for (const Run& run : runs_) {
    if (run.kind != Kind::part) continue;
    look(run.range, [&](const Piece& piece) {
      ops::measure_adam_8bit(step_of(piece), piece.count, planes_of(run, piece), measured_.data() + 2 * run.own_pair, D{});
    });
  }
  store_.shard()->sum_over_ranks(measured_.span());
}

template <typename P, typename D>
void AdamW8bit<P, D>::update(const Piece& piece) {
  auto run = std::ranges::partition_point(runs_, [&](const Run& each) { return each.range.end <= piece.range.begin; });
  while (run != runs_.end() && run->range.begin < piece.range.end) {
    const Run& first = *run++;
    const auto count = static_cast<std::size_t>(first.range.count());
    if (first.kind == Kind::blocks) {
      ops::adam_8bit(step_of(piece), count, planes_of(first, piece), D{});
    } else if (first.kind == Kind::part) {
      ops::adam_8bit_part(step_of(piece), count, planes_of(first, piece), measured_.data() + 2 * first.first_pair, first.pairs,
                          D{});
    } else {
      std::int64_t end = first.range.end;
      while (run != runs_.end() && run->range.begin < piece.range.end && run->kind == Kind::full &&
             run->place - first.place == run->range.begin - first.range.begin) {
        end = run++->range.end;
      }
      update_in_full(piece, first, end);
    }
  }
}

template <typename P, typename D>
void AdamW8bit<P, D>::update_in_full(const Piece& piece, const Run& first, std::int64_t end) const {
  const std::int64_t begin = first.range.begin - piece.range.begin;
  ops::update_elements<ops::AdamUpdate<T>>(step_of(piece), static_cast<std::size_t>(end - first.range.begin),
                                           {piece.gradients + begin, piece.values + begin, first_moment_.data() + first.place,
                                            second_moment_.data() + first.place, nullptr},
                                           D{});
}

// Codes have the shape of their parameter; there is one magnitude for each block.
template <typename P, typename D>
void AdamW8bit<P, D>::add_more_to(State& state, const std::string& prefix) {
  make_state();
  const auto listed = [&]<typename E>(const Tensor<E, D>& tensor) {
    return static_cast<E*>(store_.device().listed(state, tensor.data(), tensor.span().size_bytes()));
  };
  const std::array moments{listed(first_moment_), listed(second_moment_)};
  const std::array codes{listed(first_codes_), listed(second_codes_)};
  const std::array absmax{listed(first_absmax_), listed(second_absmax_)};
  const std::array names{"exp_avg", "exp_avg_sq"};
  for (int index = 0; index < store_.num_parameters(); ++index) {
    const ParameterInfo& info = store_.parameter(index);
    if (!info.trainable) continue;
    for (std::size_t moment = 0; moment < 2; ++moment) {
      const std::string name = prefix + names[moment];
      StateTensor elements{.name = name + (is_8bit(index) ? "_codes." : ".") + info.name,
                           .dtype = is_8bit(index) ? DType::uint8 : dtype_of<T>,
                           .shape = info.placement.shape};
      StateTensor of_blocks{.name = name + "_absmax." + info.name, .dtype = DType::float32, .shape = Shape{blocks_of(index)}};
      for (const Run& run : runs_) {
        if (run.parameter != index) continue;
        const auto pieces = run.kind == Kind::full ? store_.pieces(index, run.range, moments[moment] + run.place)
                                                   : store_.pieces(index, run.range, codes[moment] + run.place);
        elements.pieces.insert(elements.pieces.end(), pieces.begin(), pieces.end());
        if (run.kind == Kind::full) continue;
        const std::int64_t begin = (run.range.begin - info.offset) / ops::block_of_8bit;
        const std::int64_t end = (run.range.end - info.offset + ops::block_of_8bit - 1) / ops::block_of_8bit;
        // If several parts of a block lie here, the magnitude is listed for the first part.
        if (!of_blocks.pieces.empty() && of_blocks.pieces.back().elements.end > begin) continue;
        of_blocks.pieces.push_back({.data = absmax[moment] + run.block, .elements = {begin, end}});
      }
      state.add(std::move(elements));
      if (is_8bit(index)) state.add(std::move(of_blocks));
    }
  }
  state.after_load([this] {
    for (std::size_t at = 1; at < runs_.size(); ++at) {
      const Run& run = runs_[at];
      const Run& before = runs_[at - 1];
      if (run.kind != Kind::part || before.kind != Kind::part || run.first_pair != before.first_pair) continue;
      store_.device().copy(first_absmax_.data() + run.block, first_absmax_.data() + before.block, sizeof(float));
      store_.device().copy(second_absmax_.data() + run.block, second_absmax_.data() + before.block, sizeof(float));
    }
  });
}

template <typename P, typename D>
Settings AdamW8bit<P, D>::settings() const {
  return this->settings_of("AdamW8bit", {{"beta1", options_.beta1},
                                         {"beta2", options_.beta2},
                                         {"epsilon", options_.epsilon},
                                         {"maximize", options_.maximize},
                                         {"min_8bit_size", static_cast<double>(options_.min_8bit_size)}});
}

}  // namespace optim
}  // namespace trireme
