#include "trireme/optim/group_norms.hpp"

#include <algorithm>
#include <span>

#include "trireme/core/collectives.hpp"
#include "trireme/core/error.hpp"

namespace trireme::optim {

GroupNorms::GroupNorms(Model& model, const ParameterRules& rules, const std::vector<ResolvedRule>& resolved)
    : model_(model), resolved_(resolved) {
  const bool own = std::ranges::any_of(rules.groups, [](const ParameterGroup& group) { return group.clip_norm.has_value(); });
  if (!own) return;
  count_ = static_cast<int>(rules.groups.size()) + 1;
  const device::MemoryPurpose purpose("state of the optimizer");
  totals_ =
      std::make_shared<device::Storage>(model.store().device().memory(), static_cast<std::size_t>(count_) * sizeof(StepTotals));
}

const StepTotals* GroupNorms::of(const ResolvedRule& rule) const {
  return totals_ == nullptr ? nullptr : static_cast<const StepTotals*>(totals_->data()) + rule.clips_with;
}

// A parameter that is not split over the tensor or expert axis counts on its first rank only, a tied one on the first of its
// ranks.
bool GroupNorms::counts(const ParameterInfo& info) const {
  const ModelContext& context = model_.context();
  const bool of_parts = context.parts() == nullptr || context.parts()->rank() == 0 || info.placement.split();
  const bool of_pipeline =
      context.pipeline == nullptr || info.tied_ranks.empty() || info.tied_ranks.front() == context.pipeline->rank();
  return of_parts && of_pipeline;
}

void GroupNorms::measure(const std::vector<Range>& ranges, const std::vector<bool>& used) {
  if (!are_needed()) return;
  FlatStore& store = model_.store();
  const auto& shard = store.shard();
  require(shard == nullptr || !shard->fixed_bits(),
          "with FixedBits the norms of parameter groups whose gradients several ranks add up would depend on the number of "
          "ranks: give groups a clip_norm with Sharding::none, or clip by the norm of all");
  auto* totals = static_cast<StepTotals*>(totals_->data());
  store.device().zero(totals, totals_->bytes());
  const auto& gradients = store.gradient_plane();
  auto next = ranges.begin();
  for (const int index : store.layout()) {
    const ParameterInfo& info = store.parameter(index);
    if (!info.trainable) break;  // frozen ones come last
    const Range all{info.offset, info.offset + info.numel};
    while (next != ranges.end() && next->end <= all.begin) ++next;
    const auto at = static_cast<std::size_t>(index);
    if (!used[at] || !counts(info)) continue;
    for (auto range = next; range != ranges.end() && range->begin < all.end; ++range) {
      const Range here{std::max(range->begin, all.begin), std::min(range->end, all.end)};
      if (here.count() > 0) store.device().add_squares(gradients, store.dtype(), here, totals + resolved_[at].clips_with);
    }
  }
  static_assert(sizeof(StepTotals) == 3 * sizeof(double));
  const std::span sums(&totals->loss_sum, 3 * static_cast<std::size_t>(count_));
  if (shard != nullptr) shard->sum_over_ranks(sums);
  const ModelContext& context = model_.context();
  for (const Axis& axis : {context.parts(), context.pipeline}) {
    if (axis != nullptr) axis->all_reduce(sums, ReduceOp::sum, "norms of parameter groups").wait_on_stream();
  }
}

}  // namespace trireme::optim
