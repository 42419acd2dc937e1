#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include "trireme/autograd/model.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/mean.hpp"
#include "trireme/data/sources/on_device.hpp"
#include "trireme/nn/base/metrics.hpp"

namespace trireme TRIREME_EXPORT {
namespace trainer {

// Puts the model into evaluation mode; the destructor restores the mode of each module.
class Evaluation {
 public:
  explicit Evaluation(Model& model) : model_(model), before_(model.modes()) { model.modes().set("", false); }
  ~Evaluation() { model_.modes() = before_; }
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

 private:
  Model& model_;
  TrainingModes before_;
};

// Adds up the results of an evaluation: one Mean, or `count` Means.
template <std::size_t count>
class Means {
 public:
  void add(const Mean& mean) { means_[0] += mean; }
  void add(const std::array<Mean, count>& means) {
    for (std::size_t index = 0; index < count; ++index) means_[index] += means[index];
  }
  template <typename T, typename D>
  void add(const Loss<T, D>& loss) {
    means_[0] += mean_of(loss);
  }

  std::span<Mean> all() { return means_; }

 protected:
  std::array<Mean, count> means_ = {};
};

struct OneMean : Means<1> {
  Mean value() const { return means_[0]; }
};
template <std::size_t count>
struct SeveralMeans : Means<count> {
  std::array<Mean, count> value() const { return this->means_; }
};

template <typename Result>
struct MeansOf {
  using Type = OneMean;
};
template <std::size_t count>
struct MeansOf<std::array<Mean, count>> {
  using Type = SeveralMeans<count>;
};

template <typename R>
inline constexpr bool is_mean = std::same_as<R, Mean> || requires(const R& result) {
  mean_of(result);
};
template <std::size_t count>
inline constexpr bool is_mean<std::array<Mean, count>> = true;

// Adds up f(batch) over this rank's batches. Each batch is copied to D, the device of the model.
template <typename D, typename Batches, typename F>
auto means_of(const Batches& batches, const F& f) {
  const auto of = [&f](const auto& batch) { return f(data::brought_to<D>(batch)); };
  using Result = std::remove_cvref_t<decltype(of(*batches.begin()))>;
  static_assert(is_mean<Result>,
                "the function of evaluate() returns a Mean, a Loss or a std::array of Means: return Mean{sum, weight}");
  typename MeansOf<Result>::Type result;
  for (const auto& batch : batches) result.add(of(batch));
  return result;
}

}  // namespace trainer
}  // namespace trireme
