#pragma once

#include <cstdint>
#include <limits>

#include "ops/loss/cross_entropy_rows.hpp"
#include "ops/reduce/softmax_body.hpp"

// The cross-entropy of ops/loss/loss.hpp, a team for each row.
namespace trireme::ops {

// The loss and gradient of a row, with the options. Both are NaN for an invalid target, which is never used as an index.
template <int Width, typename T>
struct CrossEntropyRow {
  using A = Accumulate<T>;

  CrossEntropyRows<T> rows;
  const double* class_weight_sum;  // null: the weights are 1, or there is no smoothing

  TRIREME_TEAM bool ignored(std::int64_t row) const { return rows.targets[row] == rows.ignore_index; }
  TRIREME_TEAM bool wrong(std::int64_t row) const {
    return !ignored(row) && (rows.targets[row] < 0 || rows.targets[row] >= rows.classes);
  }
  TRIREME_TEAM double weight(std::int64_t row) const {
    if (wrong(row)) return std::numeric_limits<double>::quiet_NaN();
    return rows.class_weight == nullptr ? 1.0 : static_cast<double>(rows.class_weight[rows.targets[row]]);
  }

  template <typename Team>
  TRIREME_TEAM Exponentials<A> exponentials(const Team& team, std::int64_t row) const {
    return sum_exponentials<Width>(team, rows.logits + row * rows.classes, rows.classes);
  }

  template <typename Team>
  TRIREME_TEAM double loss(const Team& team, std::int64_t row, const Exponentials<A>& exponentials) const {
    const T* x = rows.logits + row * rows.classes;
    const auto log_sum = static_cast<double>(math::log(exponentials.sum));
    const double below = wrong(row) ? 0.0 : static_cast<double>(widened(x[rows.targets[row]]) - exponentials.largest);
    const double loss = (1 - rows.label_smoothing) * weight(row) * (log_sum - below);
    if (rows.label_smoothing == 0) return loss;
    return loss + smooth_mass() * log_sum - smooth() * weighted_sum(team, x, exponentials.largest);
  }

  template <typename Team>
  TRIREME_TEAM void gradient(const Team& team, std::int64_t row, const Exponentials<A>& exponentials, A scale,
                             T* dlogits) const {
    T* gradient = dlogits + row * rows.classes;
    if (ignored(row)) {
      each_pack<Width>(team, rows.classes, [&](std::int64_t j) { store<Width>(gradient + j, {}); });
      return;
    }
    const T* x = rows.logits + row * rows.classes;
    const std::int64_t target = rows.targets[row];
    const double of_target = (1 - rows.label_smoothing) * weight(row);
    const A of_all = scale * static_cast<A>(of_target + smooth_mass()) / exponentials.sum;
    const A share = scale * static_cast<A>(smooth());
    each_pack<Width>(team, rows.classes, [&](std::int64_t j) {
      auto values = load<Width>(x + j);
      for (int k = 0; k < Width; ++k) {
        values.at[k] = of_all * math::exp(values.at[k] - exponentials.largest);
        if (j + k == target) values.at[k] -= scale * static_cast<A>(of_target);
      }
      if (rows.label_smoothing != 0) {
        for (int k = 0; k < Width; ++k) values.at[k] -= rows.class_weight == nullptr ? share : share * rows.class_weight[j + k];
      }
      store<Width>(gradient + j, values);
    });
  }

 private:
  TRIREME_TEAM double smooth() const { return rows.label_smoothing / static_cast<double>(rows.classes); }
  TRIREME_TEAM double smooth_mass() const {
    return smooth() * (class_weight_sum == nullptr ? static_cast<double>(rows.classes) : *class_weight_sum);
  }
  template <typename Team>
  TRIREME_TEAM double weighted_sum(const Team& team, const T* x, A largest) const {
    double sum = 0;
    for (std::int64_t j = team.rank(); j < rows.classes; j += team.size()) {
      const auto value = static_cast<double>(widened(x[j]) - largest);
      sum += rows.class_weight == nullptr ? value : value * static_cast<double>(rows.class_weight[j]);
    }
    return team.sum(sum);
  }
};

// The exponentials and the loss of each row, in double for the total.
template <int Width, typename T>
struct CrossEntropyForward {
  CrossEntropyRow<Width, T> of;
  Accumulate<T>* exponentials;  // [2, rows]
  double* losses;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t row) const {
    const auto of_row = of.exponentials(team, row);
    const double loss = of.ignored(row) ? 0.0 : of.loss(team, row, of_row);
    if (team.rank() != 0) return;
    keep_exponentials(of_row, exponentials, of.rows.count, row);
    losses[row] = loss;
  }
};

template <int Width, typename T>
struct CrossEntropyLosses {
  CrossEntropyRow<Width, T> of;
  const Accumulate<T>* exponentials;
  Accumulate<T>* losses;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t row) const {
    const double loss = of.ignored(row) ? 0.0 : of.loss(team, row, exponentials_at(exponentials, of.rows.count, row));
    if (team.rank() == 0) losses[row] = static_cast<Accumulate<T>>(loss);
  }
};

template <int Width, typename T>
struct CrossEntropyGradient {
  CrossEntropyRow<Width, T> of;
  const Accumulate<T>* exponentials;
  CrossEntropyScale<Accumulate<T>> scale;
  T* dlogits;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t row) const {
    of.gradient(team, row, exponentials_at(exponentials, of.rows.count, row), scale.of(row), dlogits);
  }
};

// Both passes, while the row is in a cache.
template <int Width, typename T>
struct CrossEntropyInPlace {
  CrossEntropyRow<Width, T> of;
  Accumulate<T> scale;
  T* logits;  // the logits of `rows`
  double* losses;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t row) const {
    Exponentials<Accumulate<T>> of_row{0, 1};
    double loss = 0;
    if (!of.ignored(row)) {
      of_row = of.exponentials(team, row);
      loss = of.loss(team, row, of_row);
    }
    if (team.rank() == 0) losses[row] = loss;
    team.wait();  // all threads have read the target's logit
    of.gradient(team, row, of_row, scale, logits);
  }
};

// By one team: sums[3] = the losses, the target weight, and the first row with an invalid target or -1.
template <int Width, typename T>
struct CrossEntropyTotal {
  CrossEntropyRow<Width, T> of;
  const double* losses;
  double* sums;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team) const {
    const auto none = static_cast<double>(of.rows.count);
    double sum = 0;
    double target_weight = 0;
    double wrong = none;
    for (std::int64_t row = team.rank(); row < of.rows.count; row += team.size()) {
      if (of.ignored(row)) continue;
      if (wrong == none && of.wrong(row)) wrong = static_cast<double>(row);
      sum += losses[row];
      target_weight += of.weight(row);
    }
    sum = team.sum(sum);
    target_weight = team.sum(target_weight);
    wrong = -team.max(-wrong);
    if (team.rank() != 0) return;
    sums[0] = sum;
    sums[1] = target_weight;
    sums[2] = wrong == none ? -1 : wrong;
  }
};

}  // namespace trireme::ops
