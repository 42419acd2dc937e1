#include "layer_passes.hpp"

#include <random>
#include <ranges>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/convolution/convolution.hpp"
#include "trireme/ops/norm/batch_norm.hpp"

using namespace trireme;

namespace {

template <typename T>
Tensor<T> random_tensor(const Shape& shape) {
  static std::minstd_rand generator(1);
  std::uniform_real_distribution<float> distribution(-1, 1);
  Tensor<T> tensor(shape);
  for (T& element : tensor.span()) element = static_cast<T>(distribution(generator));
  return tensor;
}

ops::Conv2dOptions options_of(const Layer& layer) { return {.stride = layer.stride, .padding = layer.padding()}; }

}  // namespace

template <typename T>
LayerPasses<T>::LayerPasses(const std::vector<Layer>& layers, std::int64_t batch) {
  for (const Layer& layer : layers) {
    const Shape x{batch, layer.side, layer.side, layer.in};
    const Shape y{batch, layer.out_side(), layer.out_side(), layer.out};
    const Shape weight{layer.out, layer.in, layer.kernel, layer.kernel};
    Operands operands{.layer = layer,
                      .x = random_tensor<T>(x),
                      .dx = Tensor<T>(x),
                      .weight = random_tensor<T>(weight),
                      .dweight = Tensor<A>(weight),
                      .y = random_tensor<T>(y),
                      .normal = Tensor<T>(y),
                      .dnormal = Tensor<T>(y),
                      .residual = layer.residual ? random_tensor<T>(y) : Tensor<T>(),
                      .mean = Tensor<double>::zeros({layer.out}),
                      .rstd = Tensor<double>({layer.out}),
                      .scale = Tensor<A>({layer.out})};
    std::ranges::fill(operands.rstd.span(), 1.0);
    std::ranges::fill(operands.scale.span(), A{1});
    layers_.push_back(std::move(operands));
  }
}

template <typename T>
void LayerPasses<T>::convolutions() {
  for (Operands& a : layers_) ops::conv2d(a.x, a.weight, {}, options_of(a.layer), a.y);
  for (Operands& a : std::views::reverse(layers_)) {
    ops::conv2d_backward_weight(a.x, a.y, options_of(a.layer), a.dweight, false);
    if (&a != &layers_.front()) ops::conv2d_backward_data(a.y, a.weight, options_of(a.layer), a.dx, false);
  }
}

template <typename T>
void LayerPasses<T>::batch_norms() {
  for (Operands& a : layers_) {
    Tensor<double> sums({2 * a.layer.out});
    ops::batch_norm_sums(a.y, sums);
    ops::batch_norm<T, Cpu>({.x = a.y,
                             .mean = a.mean,
                             .rstd = a.rstd,
                             .weight = a.scale,
                             .bias = a.scale,
                             .residual = a.residual,
                             .relu = a.layer.relu,
                             .y = a.normal});
  }
  for (Operands& a : std::views::reverse(layers_)) {
    Tensor<double> sums({2 * a.layer.out});
    ops::BatchNormBackward<T, Cpu> pass{.x = a.y,
                                        .mean = a.mean,
                                        .rstd = a.rstd,
                                        .weight = a.scale,
                                        .bias = a.scale,
                                        .relu = a.layer.relu,
                                        .y = a.residual.defined() ? a.normal : Tensor<T>(),
                                        .dy = a.y};
    ops::batch_norm_backward_sums(pass, sums, a.residual);
    if (a.residual.defined()) {
      pass.dy = a.residual;
      pass.relu = false;
    }
    ops::batch_norm_backward(pass, sums, 1, a.dnormal, false);
  }
}

template class LayerPasses<float>;
template class LayerPasses<bfloat16>;
template class LayerPasses<float16>;
