#pragma once

#include <limits>

#include "ops/base/scalar_argument.hpp"
#include "ops/loss/vocab_parallel_rows.hpp"
#include "ops/reduce/softmax_body.hpp"
#include "trireme/ops/loss/ignored_target.hpp"

// The operations of ops/loss/vocab_parallel.hpp on a GPU. An index or target outside the vocabulary gives NaN.
namespace trireme::ops {

// The position of a row or class among the `count` held here; negative if another rank holds it.
TRIREME_TEAM std::int64_t place_among(std::int32_t index, const VocabRange& held, std::int64_t count) {
  const std::int64_t place = index - held.first;
  return place >= 0 && place < count ? place : -1;
}
TRIREME_TEAM bool in_vocabulary(std::int32_t index, const VocabRange& held) { return index >= 0 && index < held.total; }

// For i in [0, places * width / Width).
template <int Width, typename T>
struct GatherHeldRows {
  HeldRows rows;
  const T* weight;
  T* y;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const std::int64_t column = i % (rows.width / Width) * Width;
    const std::int64_t place = i / (rows.width / Width);
    const std::int32_t index = rows.index[place];
    const std::int64_t row = place_among(index, rows.held, rows.count);
    const T elsewhere = in_vocabulary(index, rows.held) ? T(0) : std::numeric_limits<T>::quiet_NaN();
    Pack<T, Width> values;
    for (int k = 0; k < Width; ++k) values.at[k] = elsewhere;
    if (row >= 0) values = load<Width>(weight + row * rows.width + column);
    store<Width>(y + place * rows.width + column, values);
  }
};

// A team for each row.
template <int Width, typename T>
struct PartialCrossEntropy {
  using A = Accumulate<T>;
  HeldClasses<T> of;
  A* exponentials;
  A* target_logits;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t row) const {
    const T* x = of.logits + row * of.classes;
    const auto [largest, sum] = sum_exponentials<Width>(team, x, of.classes);
    if (team.rank() != 0) return;
    const std::int32_t target = of.targets[row];
    const std::int64_t place = place_among(target, of.held, of.classes);
    const bool wrong = target != ignored_target && !in_vocabulary(target, of.held);
    keep_exponentials({of.classes == 0 ? -std::numeric_limits<A>::infinity() : largest, sum}, exponentials, of.rows, row);
    target_logits[row] = wrong ? std::numeric_limits<A>::quiet_NaN() : place < 0 ? A(0) : widened(x[place]);
  }
};

template <int Width, typename T>
struct PartialCrossEntropyGradient {
  using A = Accumulate<T>;
  HeldClasses<T> of;
  const A* exponentials;
  ScalarArgument<A> scale;
  T* dlogits;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t row) const {
    const T* x = of.logits + row * of.classes;
    T* gradient = dlogits + row * of.classes;
    const std::int32_t target = of.targets[row];
    const std::int64_t place = place_among(target, of.held, of.classes);
    const A of_row = target == ignored_target         ? A(0)
                     : in_vocabulary(target, of.held) ? scale.get()
                                                      : std::numeric_limits<A>::quiet_NaN();
    const auto [largest, sum] = exponentials_at(exponentials, of.rows, row);
    const A of_all = of_row / sum;
    each_pack<Width>(team, of.classes, [&, largest = largest](std::int64_t j) {
      auto values = load<Width>(x + j);
      for (int k = 0; k < Width; ++k) {
        values.at[k] = target == ignored_target ? A(0) : of_all * math::exp(values.at[k] - largest);
        if (j + k == place) values.at[k] -= of_row;
      }
      store<Width>(gradient + j, values);
    });
  }
};

// The exponentials over all ranks' classes and the loss of a row.
template <typename A>
struct JoinCrossEntropy {
  CrossEntropyParts<A> of;
  A* exponentials;
  double* losses;

  TRIREME_TEAM void operator()(std::int64_t row) const {
    const auto of_rank = [&](std::int64_t rank) { return exponentials_at(of.parts + 2 * rank * of.rows, of.rows, row); };
    A largest = of_rank(0).largest;
    for (std::int64_t rank = 1; rank < of.ranks; ++rank) {
      const A of_part = of_rank(rank).largest;
      largest = of_part > largest ? of_part : largest;
    }
    double sum = 0;
    for (std::int64_t rank = 0; rank < of.ranks; ++rank) {
      const Exponentials<A> part = of_rank(rank);
      sum += static_cast<double>(part.sum) * math::exp(static_cast<double>(part.largest - largest));
    }
    keep_exponentials({largest, static_cast<A>(sum)}, exponentials, of.rows, row);
    const double below = static_cast<double>(of.parts[2 * of.ranks * of.rows + row] - largest);
    losses[row] = of.targets[row] == ignored_target ? 0.0 : math::log(sum) - below;
  }
};

// By one team: sums[2] = the losses and the target weight.
struct JoinedTotal {
  const std::int32_t* targets;
  const double* losses;
  std::int64_t rows;
  double* sums;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team) const {
    double sum = 0;
    double target_weight = 0;
    for (std::int64_t row = team.rank(); row < rows; row += team.size()) {
      sum += losses[row];
      target_weight += targets[row] == ignored_target ? 0.0 : 1.0;
    }
    sum = team.sum(sum);
    target_weight = team.sum(target_weight);
    if (team.rank() != 0) return;
    sums[0] = sum;
    sums[1] = target_weight;
  }
};

}  // namespace trireme::ops
