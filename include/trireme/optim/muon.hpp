#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/array/copy_strided.hpp"
#include "trireme/ops/elementwise/cast.hpp"
#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/ops/update/adam.hpp"
#include "trireme/ops/update/muon.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/ops/update/scaled_sum.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

// Factor on the direction of a matrix [rows, cols], besides the learning rate.
enum class MuonScale : std::uint8_t {
  by_shape,  // sqrt(max(1, rows / cols)), torch's "original"
  as_adamw,  // 0.2 * sqrt(max(rows, cols)): steps as long as AdamW's, so use AdamW's learning rates (torch's "match_rms_adamw")
};

struct MuonOptions {
  double learning_rate = 1e-3;
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0.1;  // decoupled
  MuonScale scale = MuonScale::by_shape;
  int iterations = 5;                                              // of Newton-Schulz
  std::array<double, 3> coefficients = {3.4445, -4.7750, 2.0315};  // of x, x^3 and x^5
  // Computes the iterations in bfloat16, as torch does. If false, or if the weights are double, computes them in the weights'
  // type.
  bool bfloat16 = true;
  double epsilon = 1e-7;  // lower bound for the norm that divides the direction
  // Options of AdamW, which updates parameters of fewer than two dims and groups with adapts = false.
  double adamw_factor = 1;  // factor on the learning rate
  double beta1 = 0.9;
  double beta2 = 0.999;
  double adamw_epsilon = 1e-8;
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// SGD with momentum. Newton-Schulz iterations make the direction of each matrix orthogonal (Jordan et al. 2024, "Muon: an
// optimizer for hidden layers"). The update is that of torch.optim.Muon. A parameter of more than two dims is taken as the
// matrix [first dim, product of the other dims]. Embeddings and output layers are better left to AdamW:
//
//   optim::Muon optimizer(net, {.learning_rate = 0.02, .groups = {{.pattern = "embed.*", .adapts = false}}});
//
// If ranks share the work of the optimizer, they all-reduce each direction, and every rank makes the whole direction
// orthogonal, so Sharding::none is less work. A parameter that is split over a tensor or expert axis is an error, unless its
// group has adapts = false.
template <typename P, typename D = Cpu>
class Muon final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Muon(Model& model, const MuonOptions& options = {});

  Settings settings() const override;

 private:
  using Piece = typename Optimizer<P, D>::Piece;
  using Whole = typename Optimizer<P, D>::Whole;

  static bool is_matrix(const ParameterInfo& info, bool adapts) { return adapts && info.shape.size() >= 2; }
  void update_parameter(const Whole& whole) override;
  void update(const Piece& piece) override;  // AdamW's
  Tensor<T, D> direction_of(const Whole& whole) const;
  Tensor<T, D> orthogonal(const Tensor<T, D>& x) const;
  template <typename I>
  Tensor<I, D> iterated(Tensor<I, D> x) const;

  MuonOptions options_;
  int first_moment_;  // AdamW's; for matrices the momentum buffer
  int second_moment_;
};

template <TypedModel M>
Muon(const M&, const MuonOptions& = {}) -> Muon<typename M::Precision, typename M::Device>;

template <typename P, typename D>
Muon<P, D>::Muon(Model& model, const MuonOptions& options)
    : Optimizer<P, D>(
          model, {options.learning_rate, options.weight_decay, options.decay, options.groups, options.beta1, options.beta2},
          Needs::whole_parameters),
      options_(options),
      first_moment_(this->add_plane("momentum_buffer")),
      second_moment_(this->add_plane("exp_avg_sq")) {
  require(options.momentum >= 0 && options.momentum < 1, "Muon's momentum lies in [0, 1), got {}", options.momentum);
  require(options.iterations >= 0, "Muon's iterations are 0 or more, got {}", options.iterations);
  require(options.epsilon > 0 && options.adamw_epsilon >= 0,
          "Muon's epsilon is above 0 and its adamw_epsilon 0 or more, got {} and {}", options.epsilon, options.adamw_epsilon);
  require_betas("Muon", options.beta1, options.beta2);
  require(std::isfinite(options.adamw_factor) && options.adamw_factor >= 0,
          "Muon's adamw_factor is finite and 0 or more, got {}", options.adamw_factor);
  FlatStore& store = model.store();
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& info = store.parameter(index);
    require(!info.trainable || !info.placement.split() || !is_matrix(info, this->rule_of(index).adapts),
            "Muon needs whole matrices, and a tensor or expert axis splits {}: train without these axes, or leave it to AdamW "
            "by a group with adapts = false",
            info.name);
  }
}

template <typename P, typename D>
void Muon<P, D>::update_parameter(const Whole& whole) {
  if (!is_matrix(whole.info, whole.adapts)) return whole.visit([this](const Piece& piece) { update(piece); });
  const Tensor<T, D> direction = orthogonal(direction_of(whole));
  const auto rows = static_cast<double>(direction.shape()[0]);
  const auto cols = static_cast<double>(direction.shape()[1]);
  const double scale =
      options_.scale == MuonScale::by_shape ? std::sqrt(std::max(1.0, rows / cols)) : 0.2 * std::sqrt(std::max(rows, cols));
  whole.visit([&](const Piece& piece) {
    const ops::MuonStep step{
        .learning_rate = piece.learning_rate, .weight_decay = piece.weight_decay, .scale = scale, .on_device = piece.on_device};
    ops::update_elements<ops::MuonUpdate<T>>(step, piece.count,
                                             {direction.data() + (piece.range.begin - whole.info.offset), piece.values}, D{});
  });
}

// The momentum's direction [rows, cols], the same on all ranks.
template <typename P, typename D>
auto Muon<P, D>::direction_of(const Whole& whole) const -> Tensor<T, D> {
  const std::int64_t rows = whole.info.shape[0];
  Tensor<T, D> direction = Tensor<T, D>::zeros({rows, whole.info.numel / rows});
  whole.visit([&](const Piece& piece) {
    const ops::MuonMomentumStep step{.momentum = options_.momentum,
                                     .nesterov = options_.nesterov,
                                     .gradient_scale = piece.gradient_scale,
                                     .on_device = piece.on_device};
    ops::update_elements<ops::MuonMomentumUpdate<T>>(
        step, piece.count,
        {piece.gradients, piece.plane(first_moment_), direction.data() + (piece.range.begin - whole.info.offset)}, D{});
  });
  this->sum_over_ranks(direction.span());
  return direction;
}

template <typename P, typename D>
auto Muon<P, D>::orthogonal(const Tensor<T, D>& x) const -> Tensor<T, D> {
  const auto count = static_cast<std::size_t>(x.numel());
  const Tensor<ops::UpdateSquares, D> squares({1});
  plane_device<D>().zero(squares.data(), sizeof(ops::UpdateSquares));
  ops::lars_squares<T>(x.data(), x.data(), count, squares.data(), D{});
  ops::update_elements<ops::UnitNormUpdate<T>>({.squares = squares.data(), .epsilon = options_.epsilon}, count, {x.data()},
                                               D{});
  if constexpr (std::is_same_v<T, float>) {
    if (options_.bfloat16) return cast<T>(iterated(cast<bfloat16>(x)));
  }
  return iterated(x);
}

// Repeats x = (a + b x x^T + c (x x^T)^2) x; uses x^T x if that is the smaller matrix.
template <typename P, typename D>
template <typename I>
auto Muon<P, D>::iterated(Tensor<I, D> x) const -> Tensor<I, D> {
  const bool tall = x.shape()[0] > x.shape()[1];
  const std::int64_t side = std::min(x.shape()[0], x.shape()[1]);
  const auto [a, b, c] = options_.coefficients;
  Tensor<I, D> gram({side, side});
  Tensor<T, D> polynomial({side, side});
  Tensor<I, D> product(x.shape());
  const auto on_diagonal = Tensor<T, D>::full({1}, static_cast<T>(a));
  ops::StridedCopy diagonal;
  diagonal.add({.extent = side, .from = 0, .to = side + 1});
  for (int iteration = 0; iteration < options_.iterations; ++iteration) {
    ops::matmul(x, x, gram, {.transpose_a = tall, .transpose_b = !tall});
    ops::matmul(gram, gram, polynomial);
    // Computes both powers from the rounded gram: the iterations correct one rounding error, but not two different ones.
    ops::update_elements<ops::ScaledSumUpdate<T>>({.x_factor = b, .y_factor = c}, static_cast<std::size_t>(gram.numel()),
                                                  {cast<T>(gram).data(), polynomial.data()}, D{});
    ops::copy_strided(diagonal, on_diagonal, polynomial, true);
    if (tall) {
      ops::matmul(x, cast<I>(polynomial), product);
    } else {
      ops::matmul(cast<I>(polynomial), x, product);
    }
    std::swap(x, product);
  }
  return x;
}

template <typename P, typename D>
void Muon<P, D>::update(const Piece& piece) {
  const ops::AdamStep step{.learning_rate = piece.learning_rate * options_.adamw_factor,
                           .beta1 = piece.beta1,
                           .beta2 = piece.beta2,
                           .epsilon = options_.adamw_epsilon,
                           .weight_decay = piece.weight_decay,
                           .decoupled = true,
                           .update = piece.step,
                           .gradient_scale = piece.gradient_scale,
                           .on_device = piece.on_device};
  ops::update_elements<ops::AdamUpdate<T>>(
      step, piece.count, {piece.gradients, piece.values, piece.plane(first_moment_), piece.plane(second_moment_), nullptr},
      D{});
}

template <typename P, typename D>
Settings Muon<P, D>::settings() const {
  return this->settings_of("Muon", {{"momentum", options_.momentum},
                                    {"nesterov", options_.nesterov},
                                    {"scale", static_cast<double>(options_.scale)},
                                    {"iterations", options_.iterations},
                                    {"coefficient 1", options_.coefficients[0]},
                                    {"coefficient 3", options_.coefficients[1]},
                                    {"coefficient 5", options_.coefficients[2]},
                                    {"bfloat16", options_.bfloat16},
                                    {"epsilon", options_.epsilon},
                                    {"adamw_factor", options_.adamw_factor},
                                    {"beta1", options_.beta1},
                                    {"beta2", options_.beta2},
                                    {"adamw_epsilon", options_.adamw_epsilon}});
}

extern template class Muon<Float32, Cpu>;
extern template class Muon<MixedBfloat16, Cpu>;
extern template class Muon<MixedFloat16, Cpu>;
extern template class Muon<Float32, Cuda>;
extern template class Muon<MixedBfloat16, Cuda>;
extern template class Muon<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
