#include <fmt/format.h>

#include "ops/measure.hpp"
#include "trireme/ops/attention/attention.hpp"
#include "trireme/ops/matmul/matmul.hpp"

using namespace trireme;

namespace {

void measure_layer(Report& report, std::int64_t rows, std::int64_t in, std::int64_t out) {
  const auto x = Tensor<float>::full({rows, in}, 0.5f);
  const auto weight = Tensor<float>::full({out, in}, 0.25f);
  const auto bias = Tensor<float>::full({out}, 1);
  auto y = Tensor<float>::full({rows, out}, 0.125f);
  Tensor<float> dx({rows, in}), dweight({out, in});
  const double operations = 2.0 * static_cast<double>(rows * in * out);
  const auto name = fmt::format("[{}, {}] to {}", rows, in, out);
  report.product("linear " + name, operations, [&] { ops::linear(x, weight, bias, y); });
  report.product("linear " + name + " dx", operations, [&] { ops::matmul(y, weight, dx); });
  report.product("linear " + name + " dweight", operations, [&] { ops::matmul(y, x, dweight, {.transpose_a = true}); });
}

void measure_attention(Report& report, const GptSizes& sizes, std::int64_t batch, std::int64_t time) {
  Tensor<float> qkv({batch, time, 3 * sizes.width});
  for (std::int64_t i = 0; i < qkv.numel(); ++i) qkv.data()[i] = static_cast<float>(i * 37 % 1009) / 500.0f - 1.0f;
  const auto dout = Tensor<float>::full({batch, time, sizes.width}, 1);
  Tensor<float> out(dout.shape()), exponentials({2, batch, sizes.heads, time}), dqkv(qkv.shape());
  const ops::AttentionOptions options{.heads = static_cast<int>(sizes.heads), .causal = true};
  // Counts full time x time products: two forward, four backward.
  const double operations = 2.0 * static_cast<double>(batch * time * time * sizes.width);
  const auto name = fmt::format("attention {} x {}, {} heads of {}", batch, time, sizes.heads, sizes.width / sizes.heads);
  report.product(name, 2 * operations, [&] {
    ops::scaled_dot_product_attention<float, Cpu>({.options = options, .q = qkv, .out = out, .exponentials = exponentials});
  });
  report.product(name + " backward", 4 * operations, [&] {
    ops::scaled_dot_product_attention_backward<float, Cpu>(
        {.options = options, .q = qkv, .out = out, .exponentials = exponentials, .dout = dout, .dq = dqkv});
  });
}

}  // namespace

void measure_products(Report& report, const GptSizes& sizes) {
  measure_layer(report, sizes.rows(), sizes.width, 3 * sizes.width);
  measure_layer(report, sizes.rows(), sizes.width, sizes.width);
  measure_layer(report, sizes.rows(), sizes.width, 4 * sizes.width);
  measure_layer(report, sizes.rows(), 4 * sizes.width, sizes.width);
  measure_layer(report, sizes.rows(), sizes.width, sizes.vocabulary);
  measure_attention(report, sizes, sizes.batch, sizes.time);
  measure_attention(report, sizes, 1, 8 * sizes.time);
}
