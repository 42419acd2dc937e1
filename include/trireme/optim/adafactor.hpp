#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/matmul/batched_matmul.hpp"
#include "trireme/ops/update/adafactor.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct AdafactorOptions {
  double learning_rate = 1e-2;  // relative to the root mean square of the weights; in step n at most 1 / sqrt(n)
  double beta2_decay = -0.8;    // step n has the weight n^beta2_decay in the averages
  // Lower bound for the root of a second moment; not given: the machine epsilon of the weights' type.
  std::optional<double> epsilon1 = {};
  double epsilon2 = 1e-3;   // lower bound for the root mean square of the weights
  double clip = 1;          // upper bound for the root mean square of a parameter's direction, 1 or more
  double weight_decay = 0;  // decoupled
  bool maximize = false;    // maximizes the objective: negates the gradient
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// Adam with a factored second moment: keeps only the mean squares of the rows and columns of a matrix, or of each matrix of the
// last two dims (Shazeer, Stern 2018, arXiv 1804.04235). The update is that of torch.optim.Adafactor. Steps are relative to the
// weights, except in groups with adapts = false.
//
// Every rank keeps this state for all parameters. If ranks share the work of the optimizer, they all-reduce each gradient once
// more, so Sharding::none is less work. A parameter that is split over a tensor or expert axis is an error.
template <typename P, typename D = Cpu>
class Adafactor final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Adafactor(Model& model, const AdafactorOptions& options = {});

  Settings settings() const override;

 private:
  using Piece = typename Optimizer<P, D>::Piece;
  using Whole = typename Optimizer<P, D>::Whole;

  // The state of a parameter: mean squares of the rows and columns of [matrices, rows, cols], or of each element of a vector.
  struct Means {
    std::int64_t matrices = 0;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    Tensor<T, D> of_rows;      // [matrices, rows, 1]
    Tensor<T, D> of_cols;      // [matrices, 1, cols]
    Tensor<T, D> of_elements;  // [1, 1, elements], for a parameter of less than 2 dims
  };

  void update(const Piece&) override {}  // update_parameter() does the work
  void update_parameter(const Whole& whole) override;
  void add_more_to(State& state, const std::string& prefix) override;
  Tensor<T, D> gradient_of(const Whole& whole, const Means& means) const;
  // Updates the means with the squares of a gradient, and returns the second moment computed from them.
  Tensor<T, D> second_moment(const Whole& whole, const Means& means, const Tensor<T, D>& gradient) const;
  double epsilon1() const { return options_.epsilon1.value_or(std::numeric_limits<T>::epsilon()); }

  FlatStore& store_;
  AdafactorOptions options_;
  std::vector<Means> means_;  // by parameter
};

template <TypedModel M>
Adafactor(const M&, const AdafactorOptions& = {}) -> Adafactor<typename M::Precision, typename M::Device>;

template <typename P, typename D>
Adafactor<P, D>::Adafactor(Model& model, const AdafactorOptions& options)
    : Optimizer<P, D>(model, {options.learning_rate, options.weight_decay, options.decay, options.groups},
                      Needs::whole_parameters),
      store_(model.store()),
      options_(options) {
  require(options.beta2_decay <= 0, "Adafactor's beta2_decay is 0 or less, got {}", options.beta2_decay);
  require(options.epsilon1.value_or(1) > 0 && options.epsilon2 >= 0,
          "Adafactor's epsilon1 is above 0 and its epsilon2 0 or more, got {} and {}", options.epsilon1.value_or(1),
          options.epsilon2);
  require(options.clip >= 1, "Adafactor's clip is 1 or more, got {}", options.clip);
  const device::MemoryPurpose purpose("state of the optimizer");
  for (int index = 0; index < store_.num_parameters(); ++index) {
    const ParameterInfo& info = store_.parameter(index);
    Means& means = means_.emplace_back();
    if (!info.trainable || info.numel == 0) continue;
    require(!info.placement.split(),
            "Adafactor needs whole parameters, and a tensor or expert axis splits {}: train without these axes", info.name);
    if (info.shape.size() < 2) {
      means.matrices = 1;
      means.rows = 1;
      means.cols = info.numel;
      means.of_elements = Tensor<T, D>::zeros({1, 1, info.numel});
      continue;
    }
    means.cols = info.shape[info.shape.size() - 1];
    means.rows = info.shape[info.shape.size() - 2];
    means.matrices = info.numel / (means.rows * means.cols);
    means.of_rows = Tensor<T, D>::zeros({means.matrices, means.rows, 1});
    means.of_cols = Tensor<T, D>::zeros({means.matrices, 1, means.cols});
  }
}

template <typename P, typename D>
void Adafactor<P, D>::update_parameter(const Whole& whole) {
  const Means& means = means_[static_cast<std::size_t>(whole.index)];
  const Tensor<T, D> gradient = gradient_of(whole, means);
  const Tensor<T, D> direction = second_moment(whole, means, gradient);
  const auto count = static_cast<std::size_t>(whole.info.numel);
  ops::update_elements<ops::AdafactorDirectionUpdate<T>>({.epsilon = epsilon1()}, count, {gradient.data(), direction.data()},
                                                         D{});
  const Tensor<ops::UpdateSquares, D> squares({1});
  plane_device<D>().zero(squares.data(), sizeof(ops::UpdateSquares));
  const T* weights = store_.template values<T, D>().data() + whole.info.offset;
  ops::lars_squares<T>(weights, direction.data(), count, squares.data(), D{});
  whole.visit([&](const Piece& piece) {
    const ops::AdafactorStep step{.learning_rate = piece.learning_rate,
                                  .weight_decay = piece.weight_decay,
                                  .epsilon = options_.epsilon2,
                                  .clip = options_.clip,
                                  .adapts = piece.adapts,
                                  .count = static_cast<double>(count),
                                  .update = piece.step,
                                  .squares = squares.data(),
                                  .on_device = piece.on_device};
    ops::update_elements<ops::AdafactorUpdate<T>>(
        step, piece.count, {direction.data() + (piece.range.begin - whole.info.offset), piece.values}, D{});
  });
}

// The scaled gradient [matrices, rows, cols], the same on all ranks.
template <typename P, typename D>
auto Adafactor<P, D>::gradient_of(const Whole& whole, const Means& means) const -> Tensor<T, D> {
  Tensor<T, D> gradient = Tensor<T, D>::zeros({means.matrices, means.rows, means.cols});
  whole.visit([&](const Piece& piece) {
    const ops::AdafactorGradientStep step{.gradient_scale = options_.maximize ? -piece.gradient_scale : piece.gradient_scale,
                                          .on_device = piece.on_device};
    ops::update_elements<ops::AdafactorGradientUpdate<T>>(
        step, piece.count, {piece.gradients, gradient.data() + (piece.range.begin - whole.info.offset)}, D{});
  });
  this->sum_over_ranks(gradient.span());
  return gradient;
}

template <typename P, typename D>
auto Adafactor<P, D>::second_moment(const Whole& whole, const Means& means, const Tensor<T, D>& gradient) const
    -> Tensor<T, D> {
  const auto& [matrices, rows, cols, of_rows, of_cols, of_elements] = means;
  const auto size = [](const Tensor<T, D>& tensor) { return static_cast<std::size_t>(tensor.numel()); };
  Tensor<T, D> moment(gradient.shape());
  ops::update_elements<ops::AdafactorSquareUpdate<T>>({}, size(moment), {gradient.data(), moment.data()}, D{});
  const auto move = [&](const Tensor<T, D>& sums, std::int64_t summed, const Tensor<T, D>& average) {
    const ops::AdafactorMeanStep step{.factor = 1 / static_cast<double>(summed),
                                      .beta2_decay = options_.beta2_decay,
                                      .update = whole.step,
                                      .on_device = whole.on_device};
    ops::update_elements<ops::AdafactorMeanUpdate<T>>(step, size(average), {sums.data(), average.data()}, D{});
  };
  if (of_elements.defined()) {
    move(moment, 1, of_elements);
    store_.device().copy(moment.data(), of_elements.data(), of_elements.span().size_bytes());
    return moment;
  }
  const Tensor<T, D> ones = Tensor<T, D>::full({std::max(rows, cols)}, 1);
  const Tensor<T, D> along_rows = ones.narrow(0, rows).reshape({1, rows});
  const Tensor<T, D> along_cols = ones.narrow(0, cols).reshape({1, cols});
  Tensor<T, D> row_sums(of_rows.shape());
  ops::batched_matmul(moment, along_cols, row_sums, {.transpose_b = true});
  Tensor<T, D> col_sums(of_cols.shape());
  ops::batched_matmul(along_rows, moment, col_sums);
  move(row_sums, cols, of_rows);
  move(col_sums, rows, of_cols);
  // rows * cols / mean of the rows
  Tensor<T, D> sums({matrices, 1, 1});
  ops::batched_matmul(along_rows, of_rows, sums);
  ops::batched_matmul(sums, along_cols, col_sums);
  const ops::AdafactorQuotientStep step{.factor = 1 / static_cast<double>(rows), .smallest = epsilon1()};
  ops::update_elements<ops::AdafactorQuotientUpdate<T>>(step, size(of_cols), {of_cols.data(), col_sums.data()}, D{});
  ops::batched_matmul(of_rows, col_sums, moment);
  return moment;
}

template <typename P, typename D>
void Adafactor<P, D>::add_more_to(State& state, const std::string& prefix) {
  for (int index = 0; index < store_.num_parameters(); ++index) {
    const ParameterInfo& info = store_.parameter(index);
    const Means& means = means_[static_cast<std::size_t>(index)];
    const auto add = [&](const char* name, const Tensor<T, D>& tensor, const Shape& shape) {
      if (!tensor.defined()) return;
      void* place = store_.device().listed(state, tensor.data(), tensor.span().size_bytes());
      state.add(prefix + name + info.name, shape, static_cast<T*>(place));
    };
    add("row_var.", means.of_rows, {means.matrices, means.rows});
    add("col_var.", means.of_cols, {means.matrices, means.cols});
    add("variance.", means.of_elements, info.shape);
  }
}

template <typename P, typename D>
Settings Adafactor<P, D>::settings() const {
  return this->settings_of("Adafactor", {{"beta2_decay", options_.beta2_decay},
                                         {"epsilon1", epsilon1()},
                                         {"epsilon2", options_.epsilon2},
                                         {"clip", options_.clip},
                                         {"maximize", options_.maximize}});
}

extern template class Adafactor<Float32, Cpu>;
extern template class Adafactor<MixedBfloat16, Cpu>;
extern template class Adafactor<MixedFloat16, Cpu>;
extern template class Adafactor<Float32, Cuda>;
extern template class Adafactor<MixedBfloat16, Cuda>;
extern template class Adafactor<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
