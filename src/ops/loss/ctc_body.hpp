#pragma once

#include <cstdint>
#include <limits>

#include "device/cuda/team.hpp"
#include "trireme/math/exponential.hpp"

// The CTC loss of ops/loss/ctc.hpp, a team for each sample. Its states are the labels with a blank before, between and after
// them.
namespace trireme::ops {

template <typename T>
struct CtcSamples {
  const T* log_probabilities;   // [batch, time, classes]
  const std::int32_t* targets;  // [batch, labels]
  const std::int32_t* input_lengths;
  const std::int32_t* target_lengths;
  std::int64_t batch;
  std::int64_t time;
  std::int64_t classes;
  std::int64_t labels;
  std::int32_t blank;
  bool zero_infinity;
  bool per_label;

  std::int64_t most_states() const { return 2 * labels + 1; }
};

template <typename T>
struct CtcSample {
  const T* log_probabilities;
  const std::int32_t* targets;
  std::int64_t rows;
  std::int64_t labels;
  std::int64_t classes;
  std::int32_t blank;

  TRIREME_TEAM CtcSample(const CtcSamples<T>& of, std::int64_t sample)
      : log_probabilities(of.log_probabilities + sample * of.time * of.classes),
        targets(of.targets + sample * of.labels),
        rows(of.input_lengths[sample]),
        labels(of.target_lengths[sample]),
        classes(of.classes),
        blank(of.blank) {}

  TRIREME_TEAM bool fits(const CtcSamples<T>& of) const {
    if (rows < 0 || rows > of.time || labels < 0 || labels > of.labels) return false;
    for (std::int64_t i = 0; i < labels; ++i) {
      if (targets[i] < 0 || targets[i] >= classes || targets[i] == blank) return false;
    }
    return true;
  }
  TRIREME_TEAM std::int64_t states() const { return 2 * labels + 1; }
  TRIREME_TEAM std::int32_t class_of(std::int64_t state) const { return state % 2 == 0 ? blank : targets[state / 2]; }
  TRIREME_TEAM double at(std::int64_t row, std::int64_t state) const {
    return static_cast<double>(log_probabilities[row * classes + class_of(state)]);
  }
  // Whether a path may skip the blank between the state two before and this one.
  TRIREME_TEAM bool skips_to(std::int64_t state) const {
    return state % 2 == 1 && state >= 2 && targets[state / 2] != targets[state / 2 - 1];
  }
};

// Log-probabilities of paths are sums over the rows, and so they are double. Their differences stay exact; exponentials of
// these are computed in T.
inline constexpr double no_path = -std::numeric_limits<double>::infinity();

template <typename T>
TRIREME_TEAM double log_sum_exp_of(double a, double b, double c) {
  const double larger = a < b ? b : a;
  const double smaller = a < b ? a : b;
  const double largest = larger < c ? c : larger;
  const double other = larger < c ? larger : c;
  const double sum = a + b + c;
  if (largest == no_path || sum != sum) return sum;  // NaN stays
  const T others = math::exp(static_cast<T>(smaller - largest)) + math::exp(static_cast<T>(other - largest));
  return largest + static_cast<double>(math::log(T(1) + others));
}

// The log-probability of the labels, from alpha of the last row.
template <typename T>
TRIREME_TEAM double ctc_log_likelihood(const CtcSample<T>& of, const double* alpha, std::int64_t most_states) {
  if (of.rows == 0) return of.labels == 0 ? 0 : no_path;
  const double* last = alpha + (of.rows - 1) * most_states;
  return log_sum_exp_of<T>(last[of.states() - 1], of.labels == 0 ? no_path : last[of.states() - 2], no_path);
}

// alpha[row, state]: the log-probability of all paths that are in the state after the row.
template <typename T>
struct CtcForward {
  CtcSamples<T> samples;
  T* losses;
  double* alpha;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t sample) const {
    const CtcSample<T> of(samples, sample);
    if (!of.fits(samples)) {
      if (team.rank() == 0) losses[sample] = std::numeric_limits<T>::quiet_NaN();
      return;
    }
    const std::int64_t most_states = 2 * samples.labels + 1;
    double* const first = alpha + sample * samples.time * most_states;
    for (std::int64_t row = 0; row < of.rows; ++row) {
      double* here = first + row * most_states;
      const double* before = here - most_states;
      for (std::int64_t state = team.rank(); state < of.states(); state += team.size()) {
        if (row == 0) {
          here[state] = state < 2 ? of.at(row, state) : no_path;
        } else {
          here[state] = of.at(row, state) + log_sum_exp_of<T>(before[state], state >= 1 ? before[state - 1] : no_path,
                                                              of.skips_to(state) ? before[state - 2] : no_path);
        }
      }
      team.wait();
    }
    if (team.rank() != 0) return;
    const double log_likelihood = ctc_log_likelihood(of, first, most_states);
    const bool impossible = samples.zero_infinity && log_likelihood == no_path;
    const double divisor = samples.per_label && of.labels > 0 ? static_cast<double>(of.labels) : 1;
    losses[sample] = impossible ? T(0) : static_cast<T>(-log_likelihood / divisor);
  }
};

// beta[state]: the log-probability of all paths from the state, after the row, to the end. alpha + beta - log likelihood is the
// log of the probability that the path is in the state; the gradient is minus this probability. One thread adds the states of a
// class, in order: next[label] is the next label of the same class, or -1; a thread begins at the first.
template <typename T>
struct CtcBackward {
  CtcSamples<T> samples;
  const double* alpha;
  const T* dlosses;
  double* beta;        // [batch, 2, states]: for this row and the next one
  std::int32_t* next;  // [batch, labels]
  T* dlog_probabilities;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t sample) const {
    const CtcSample<T> of(samples, sample);
    T* const gradient = dlog_probabilities + sample * samples.time * samples.classes;
    const bool fits = of.fits(samples);
    const T rest = fits ? T(0) : std::numeric_limits<T>::quiet_NaN();
    for (std::int64_t i = team.rank(); i < samples.time * samples.classes; i += team.size()) gradient[i] = rest;
    if (!fits || of.rows == 0) return;
    const std::int64_t most_states = 2 * samples.labels + 1;
    const double* const first = alpha + sample * samples.time * most_states;
    const double log_likelihood = ctc_log_likelihood(of, first, most_states);
    if (samples.zero_infinity && log_likelihood == no_path) return;
    const T scale = dlosses[sample] / (samples.per_label && of.labels > 0 ? T(of.labels) : T(1));

    std::int32_t* const link = next + sample * samples.labels;
    for (std::int64_t label = team.rank(); label < of.labels; label += team.size()) link[label] = following(of, label);
    team.wait();
    for (std::int64_t row = of.rows - 1; row >= 0; --row) {
      double* const here = beta + (2 * sample + row % 2) * most_states;
      const double* const after = beta + (2 * sample + (row + 1) % 2) * most_states;
      for (std::int64_t state = team.rank(); state < of.states(); state += team.size()) {
        here[state] = row == of.rows - 1 ? (state >= of.states() - 2 ? 0 : no_path) : from(of, row + 1, state, after);
      }
      team.wait();
      const double* const forward = first + row * most_states;
      T* const of_row = gradient + row * of.classes;
      const auto share = [&](std::int64_t state) {
        return math::exp(static_cast<T>(forward[state] + here[state] - log_likelihood));
      };
      T of_blanks = 0;
      for (std::int64_t i = team.rank(); i <= of.labels; i += team.size()) of_blanks += share(2 * i);
      of_blanks = team.sum(of_blanks);
      if (team.rank() == 0) of_row[of.blank] = -scale * of_blanks;
      for (std::int64_t label = team.rank(); label < of.labels; label += team.size()) {
        if (!is_first(of, label)) continue;
        T sum = 0;
        for (std::int64_t same = label; same >= 0; same = link[same]) sum += share(2 * same + 1);
        of_row[of.targets[label]] = -scale * sum;
      }
    }
  }

 private:
  // The log-probability of all paths that go on from the state in `row`.
  TRIREME_TEAM static double from(const CtcSample<T>& of, std::int64_t row, std::int64_t state, const double* beta) {
    const auto to = [&](std::int64_t target) { return of.at(row, target) + beta[target]; };
    return log_sum_exp_of<T>(to(state), state + 1 < of.states() ? to(state + 1) : no_path,
                             state + 2 < of.states() && of.skips_to(state + 2) ? to(state + 2) : no_path);
  }
  TRIREME_TEAM static std::int32_t following(const CtcSample<T>& of, std::int64_t label) {
    for (std::int64_t other = label + 1; other < of.labels; ++other) {
      if (of.targets[other] == of.targets[label]) return static_cast<std::int32_t>(other);
    }
    return -1;
  }
  TRIREME_TEAM static bool is_first(const CtcSample<T>& of, std::int64_t label) {
    for (std::int64_t other = 0; other < label; ++other) {
      if (of.targets[other] == of.targets[label]) return false;
    }
    return true;
  }
};

}  // namespace trireme::ops
