#pragma once

#include "device/cuda/team.hpp"
#include "trireme/ops/update/lamb.hpp"

namespace trireme::ops {

// The first pass of LAMB over every `parts`-th run of team.size() elements. Updates the moments; weight_sums[part] and
// update_sums[part] become sums of squares, in double. A skipped step goes over no elements.
template <typename T>
struct LambMoments {
  const T* weight;
  const T* gradient;
  T* first_moment;
  T* second_moment;
  std::int64_t count;
  std::int64_t parts;
  double* weight_sums;
  double* update_sums;

  template <typename Team>
  TRIREME_TEAM void operator()(const LambUpdate<T>& update, bool skipped, const Team& team, std::int64_t part) const {
    const std::int64_t end = skipped ? 0 : count;
    const std::int64_t threads = parts * team.size();
    double weights = 0;
    double updates = 0;
    for (std::int64_t i = part * team.size() + team.rank(); i < end; i += threads) {
      const auto w = static_cast<double>(weight[i]);
      const auto u = static_cast<double>(update.measured(gradient[i], weight[i], first_moment[i], second_moment[i]));
      weights += w * w;
      updates += u * u;
    }
    weights = team.sum(weights);
    updates = team.sum(updates);
    if (team.rank() != 0) return;
    weight_sums[part] = weights;
    update_sums[part] = updates;
  }
};

}  // namespace trireme::ops
