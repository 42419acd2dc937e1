#include <fmt/format.h>

#include <type_traits>

#include "ops/measure.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"
#include "trireme/ops/embedding/embedding.hpp"
#include "trireme/ops/loss/loss.hpp"
#include "trireme/ops/norm/batch_norm.hpp"
#include "trireme/ops/norm/group_norm.hpp"
#include "trireme/ops/norm/norm.hpp"
#include "trireme/ops/reduce/reduce.hpp"
#include "trireme/ops/reduce/reductions.hpp"
#include "trireme/ops/update/adam.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/ops/update/sgd.hpp"

using namespace trireme;

namespace {

template <typename T = float>
Tensor<T> filled(const Shape& shape) {
  Tensor<T> tensor(shape);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.data()[i] = static_cast<T>(static_cast<float>(i * 37 % 1009) / 500.0f - 1.0f);
  }
  return tensor;
}

Tensor<std::int32_t> indices(std::int64_t count, std::int64_t below) {
  Tensor<std::int32_t> tensor({count});
  for (std::int64_t i = 0; i < count; ++i) tensor.data()[i] = static_cast<std::int32_t>(i * 37 % below);
  return tensor;
}

template <typename T = float>
double bytes(std::int64_t elements, int arrays) {
  return static_cast<double>(elements) * arrays * sizeof(T);
}

void measure_elementwise(Report& report, const GptSizes& sizes) {
  const Shape wide{sizes.rows(), 4 * sizes.width};
  const auto x = filled(wide);
  const auto dy = filled(wide);
  Tensor<float> y(wide);
  const auto measure = [&](const std::string& name, ops::Activation kind) {
    report.memory_bound(name, bytes(x.numel(), 2), [&] { ops::activation(kind, x, y); });
    report.memory_bound(name + " backward", bytes(x.numel(), 3), [&] { ops::activation_backward(kind, x, dy, y, false); });
  };
  measure("gelu_tanh", ops::Activation::gelu_tanh);
  measure("gelu_erf", ops::Activation::gelu_erf);
  measure("relu", ops::Activation::relu);
  measure("silu", ops::Activation::silu);
  measure("tanh", ops::Activation::tanh);
  report.memory_bound("add", bytes(x.numel(), 3), [&] { ops::add(x, dy, y); });
  report.memory_bound("dropout", bytes(x.numel(), 2), [&] { ops::dropout(x, 0.1, {}, y); });
  for (const std::int64_t width : {sizes.width, 3 * sizes.width, 4 * sizes.width}) {
    const auto matrix = filled({sizes.rows(), width});
    Tensor<float> columns({width});
    report.memory_bound("sum_rows " + matrix.shape().str(), bytes(matrix.numel(), 1),
                        [&] { ops::sum_rows(matrix, columns, false); });
  }
}

void measure_norms(Report& report, const GptSizes& sizes) {
  const Shape shape{sizes.rows(), sizes.width};
  const auto x = filled(shape);
  const auto residual = filled(shape);
  const auto weight = filled({sizes.width});
  const Tensor<float> x_sum(shape), y(shape), dx(shape);
  const Tensor<float> mean({sizes.rows()}), rstd({sizes.rows()}), dweight({sizes.width}), dbias({sizes.width});
  report.memory_bound("layer_norm", bytes(x.numel(), 2), [&] {
    ops::layer_norm<float, Cpu>({.x = x, .weight = weight, .bias = weight, .y = y, .mean = mean, .rstd = rstd});
  });
  report.memory_bound("layer_norm with residual", bytes(x.numel(), 4), [&] {
    ops::layer_norm<float, Cpu>(
        {.x = x, .residual = residual, .weight = weight, .bias = weight, .x_sum = x_sum, .y = y, .mean = mean, .rstd = rstd});
  });
  for (const bool accumulate : {false, true}) {
    report.memory_bound(accumulate ? "layer_norm backward, adding" : "layer_norm backward",
                        bytes(x.numel(), accumulate ? 4 : 3), [&] {
                          ops::layer_norm_backward<float, Cpu>({.x = x,
                                                                .weight = weight,
                                                                .mean = mean,
                                                                .rstd = rstd,
                                                                .dy = residual,
                                                                .dx = dx,
                                                                .accumulate_dx = accumulate,
                                                                .dweight = dweight,
                                                                .dbias = dbias});
                        });
  }
  report.memory_bound("rms_norm", bytes(x.numel(), 2),
                      [&] { ops::rms_norm<float, Cpu>({.x = x, .weight = weight, .y = y, .rstd = rstd}); });
  report.memory_bound("rms_norm with residual", bytes(x.numel(), 4), [&] {
    ops::rms_norm<float, Cpu>({.x = x, .residual = residual, .weight = weight, .x_sum = x_sum, .y = y, .rstd = rstd});
  });
  report.memory_bound("rms_norm backward", bytes(x.numel(), 3), [&] {
    ops::rms_norm_backward<float, Cpu>({.x = x, .weight = weight, .rstd = rstd, .dy = residual, .dx = dx, .dweight = dweight});
  });
}

// Images of a ResNet on CIFAR. Statistics and gradients each need a pass over x before the first write, so forward has two
// reads and a write, backward four reads and a write.
template <typename T>
void measure_image_norms(Report& report, const Shape& shape) {
  const std::int64_t channels = shape.back();
  const auto x = filled<T>(shape);
  const auto residual = filled<T>(shape);
  const auto weight = filled({channels});
  const auto mean = Tensor<double>::zeros({channels}), rstd = Tensor<double>::full({channels}, 1);
  const Tensor<T> y(shape);
  Tensor<T> dx(shape), dresidual(shape);
  auto sums = Tensor<double>::zeros({2 * channels});
  const auto row = [&](const std::string& name, int arrays, const auto& run) {
    report.memory_bound(name + " " + shape.str() + (std::is_same_v<T, float> ? "" : " bfloat16"), bytes<T>(x.numel(), arrays),
                        run);
  };
  const auto forward = [&](const Tensor<T>& added, bool relu) {
    ops::batch_norm_sums(x, sums);
    ops::batch_norm<T, Cpu>(
        {.x = x, .mean = mean, .rstd = rstd, .weight = weight, .bias = weight, .residual = added, .relu = relu, .y = y});
  };
  const auto backward = [&](bool relu, const Tensor<T>& result, const Tensor<T>& through_residual) {
    ops::BatchNormBackward<T, Cpu> pass{
        .x = x, .mean = mean, .rstd = rstd, .weight = weight, .bias = weight, .relu = relu, .y = result, .dy = residual};
    ops::batch_norm_backward_sums(pass, sums, through_residual);
    if (through_residual.defined()) {
      pass.dy = through_residual;
      pass.relu = false;
    }
    ops::batch_norm_backward(pass, sums, 1, dx, false);
  };
  row("batch_norm sums", 1, [&] { ops::batch_norm_sums(x, sums); });
  row("batch_norm", 3, [&] { forward({}, false); });
  row("batch_norm, relu", 3, [&] { forward({}, true); });
  row("batch_norm, relu after it", 5, [&] {
    forward({}, false);
    ops::activation(ops::Activation::relu, y, dx);
  });
  row("batch_norm, add, relu", 4, [&] { forward(residual, true); });
  row("batch_norm, add and relu after it", 8, [&] {
    forward({}, false);
    ops::add(y, residual, dx);
    ops::activation(ops::Activation::relu, dx, dx);
  });
  row("batch_norm backward", 5, [&] { backward(false, {}, {}); });
  row("batch_norm backward, relu", 5, [&] { backward(true, {}, {}); });
  row("batch_norm backward, relu before it", 8, [&] {
    ops::activation_backward(ops::Activation::relu, y, residual, dresidual, false);
    backward(false, {}, {});
  });
  row("batch_norm backward, add, relu", 7, [&] { backward(true, y, dresidual); });
  const int groups = channels % 4 == 0 ? 4 : 1;
  const Tensor<double> group_mean({shape[0], groups}), group_rstd({shape[0], groups});
  row("group_norm", 3, [&] {
    ops::group_norm<T, Cpu>({.x = x, .groups = groups, .weight = weight, .y = y, .mean = group_mean, .rstd = group_rstd});
  });
  row("group_norm backward", 5, [&] {
    ops::group_norm_backward<T, Cpu>(
        {.x = x, .groups = groups, .weight = weight, .mean = group_mean, .rstd = group_rstd, .dy = residual, .dx = dx});
  });
}

void measure_ends(Report& report, const GptSizes& sizes) {
  for (const std::int64_t classes : {sizes.vocabulary, std::int64_t{50257}}) {
    const std::int64_t rows = classes > 1000 ? 256 : sizes.rows();
    const auto logits = filled({rows, classes});
    const auto targets = indices(rows, classes);
    Tensor<float> exponentials({2, rows}), dlogits(logits.shape());
    const std::string name = "cross_entropy " + logits.shape().str();
    const auto plain = [&] { ops::cross_entropy(logits, targets, exponentials); };
    const auto plain_backward = [&] { ops::cross_entropy_backward(logits, targets, exponentials, 0.5f, dlogits); };
    report.memory_bound(name, bytes(logits.numel(), 1), plain);
    report.memory_bound(name + " backward", bytes(logits.numel(), 2), plain_backward);
    // Smoothed labels should take as long as plain ones.
    for (const auto& [kind, weight] : {std::pair{" smoothed", Tensor<float>()}, {" smoothed, weighted", filled({classes})}}) {
      const ops::CrossEntropyOptions<float, Cpu> options{.label_smoothing = 0.1, .class_weight = weight};
      const auto smoothed = [&] { ops::cross_entropy(logits, targets, exponentials, options); };
      const auto smoothed_backward = [&] {
        ops::cross_entropy_backward(logits, targets, exponentials, 0.5f, dlogits, options);
      };
      report.memory_bound(name + kind, bytes(logits.numel(), 1), smoothed);
      report.memory_bound(name + kind + " backward", bytes(logits.numel(), 2), smoothed_backward);
      report.ratio(name + kind + " / plain", smoothed, plain);
      report.ratio(name + kind + " backward / plain", smoothed_backward, plain_backward);
    }
  }
  const auto index = indices(sizes.rows(), sizes.vocabulary);
  const auto table = filled({sizes.vocabulary, sizes.width});
  Tensor<float> rows({sizes.rows(), sizes.width}), dtable(table.shape());
  report.memory_bound("embedding", bytes(rows.numel(), 2), [&] { ops::embedding(index, table, rows); });
  report.memory_bound("embedding backward", bytes(rows.numel(), 2),
                      [&] { ops::embedding_backward(index, rows, dtable, true); });
}

// Compared with reading the memory once.
void measure_reductions(Report& report) {
  const auto x = filled({4096, 1024});
  const auto half = filled<bfloat16>(x.shape());
  const std::string name = fmt::format(" {}", x.shape());
  report.memory_bound("sum" + name, bytes(x.numel(), 1), [&] { sum(x); });
  for (const int dim : {0, 1}) {
    const std::string over = fmt::format(" over dim {}{}", dim, name);
    report.memory_bound("sum" + over, bytes(x.numel(), 1), [&] { sum(x, dim); });
    report.memory_bound("max" + over, bytes(x.numel(), 1), [&] { max(x, dim); });
    report.memory_bound("sum" + over + " bfloat16", bytes<bfloat16>(x.numel(), 1), [&] { sum(half, dim); });
    report.memory_bound("var" + over, bytes(x.numel(), 2), [&] { var(x, dim); });  // the mean first
  }
}

void measure_optimizers(Report& report, const GptSizes& sizes) {
  const std::int64_t count = sizes.parameters;
  const auto elements = static_cast<std::size_t>(count);
  const auto weight = filled({count}), gradient = filled({count}), first = filled({count}),
             second = Tensor<float>::full({count}, 1);
  report.memory_bound("adamw", bytes(count, 7), [&] {
    ops::update_elements<ops::AdamUpdate<float>>({.learning_rate = 1e-4, .weight_decay = 0.1}, elements,
                                                 {gradient.data(), weight.data(), first.data(), second.data(), nullptr});
  });
  report.memory_bound("sgd with momentum", bytes(count, 5), [&] {
    ops::update_elements<ops::SgdUpdate<float>>({.learning_rate = 1e-4, .momentum = 0.9}, elements,
                                                {gradient.data(), weight.data(), first.data()});
  });
  report.memory_bound("sum_of_squares", bytes(count, 1), [&] { ops::sum_of_squares(gradient.data(), elements); });
}

}  // namespace

void measure_memory_bound(Report& report, const GptSizes& sizes) {
  measure_elementwise(report, sizes);
  measure_norms(report, sizes);
  for (const Shape& shape : {Shape{128, 32, 32, 64}, Shape{128, 32, 32, 3}, Shape{128, 4, 4, 512}}) {
    measure_image_norms<float>(report, shape);
    measure_image_norms<bfloat16>(report, shape);
  }
  measure_ends(report, sizes);
  measure_reductions(report);
  measure_optimizers(report, sizes);
}
