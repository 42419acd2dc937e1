// Single operations on one GPU: memory-bound ones beside the copy bandwidth of the same run, and matrix products in
// bfloat16 and of 8-bit operands.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <random>

#include "gpu_measurement.hpp"
#include "measurement/command_line.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/ops/matmul/float8.hpp"
#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/ops/norm/norm.hpp"
#include "trireme/ops/update/adam.hpp"
#include "trireme/ops/update/adam_8bit.hpp"
#include "trireme/ops/update/optimizer.hpp"

using namespace trireme;

namespace {

struct Options {
  std::int64_t elements = 1 << 27;  // of each array: far more than the caches hold
  std::int64_t rows = 16384;        // of layer norms and products
  std::int64_t width = 1280;        // the 774M model's
  int calls = 20;
};

double seconds_of(const Options& options, const std::function<void()>& call) {
  return time_calls(3, options.calls, call).gpu_seconds;
}

template <typename T>
Tensor<T, Cuda> random_tensor(const Shape& shape) {
  std::minstd_rand generator(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Tensor<T> tensor(shape);
  for (T& element : tensor.span()) element = static_cast<T>(uniform(generator));
  return tensor.template to<Cuda>();
}

// Bytes a second that each call reads and writes; the copy comes first.
class Bandwidths {
 public:
  explicit Bandwidths(const Options& options) : options_(options) {}

  void measure(const std::string& name, double bytes, const std::function<void()>& call) {
    bytes_per_second_.emplace_back(name, bytes / seconds_of(options_, call));
  }

  nlohmann::ordered_json figures() const {
    nlohmann::ordered_json result;
    for (const auto& [name, rate] : bytes_per_second_) {
      result[name] = {{"bytes_per_second", rate}, {"share_of_copy", rate / bytes_per_second_.front().second}};
    }
    return result;
  }

 private:
  const Options& options_;
  std::vector<std::pair<std::string, double>> bytes_per_second_;
};

void measure_copy(Bandwidths& bandwidths, const Options& options) {
  const Tensor<float, Cuda> source = Tensor<float, Cuda>::zeros({options.elements});
  const Tensor<float, Cuda> target({options.elements});
  const std::size_t bytes = source.span().size_bytes();
  bandwidths.measure("copy", 2 * static_cast<double>(bytes),
                     [&] { device::copy_bytes(Cuda{}, target.data(), Cuda{}, source.data(), bytes); });
}

void measure_adamw(Bandwidths& bandwidths, const Options& options) {
  const auto weight = random_tensor<float>({options.elements});
  const auto gradient = random_tensor<float>({options.elements});
  const auto first = Tensor<float, Cuda>::zeros({options.elements});
  const auto second = Tensor<float, Cuda>::zeros({options.elements});
  const ops::AdamStep step{.learning_rate = 1e-3, .weight_decay = 0.1, .decoupled = true};
  constexpr double bytes = 7 * sizeof(float);  // four are read, three written
  bandwidths.measure("adamw", bytes * static_cast<double>(options.elements), [&] {
    ops::update_elements<ops::AdamUpdate<float>>(
        step, weight.span().size(), {gradient.data(), weight.data(), first.data(), second.data(), nullptr}, Cuda{});
  });
}

void measure_adamw_8bit(Bandwidths& bandwidths, const Options& options) {
  const auto weight = random_tensor<float>({options.elements});
  const auto gradient = random_tensor<float>({options.elements});
  const std::int64_t blocks = (options.elements + ops::block_of_8bit - 1) / ops::block_of_8bit;
  const auto codes = Tensor<std::uint8_t, Cuda>::zeros({2, options.elements});
  const auto absmax = Tensor<float, Cuda>::zeros({2, blocks});
  const ops::Adam8bitPlanes<float> planes{gradient.data(), weight.data(),         codes.data(), codes.data() + options.elements,
                                          absmax.data(),   absmax.data() + blocks};
  const ops::AdamStep step{.learning_rate = 1e-3, .weight_decay = 0.1, .decoupled = true};
  constexpr double bytes = 3 * sizeof(float) + 4;  // weight, gradient and two codes are read, weight and codes written
  bandwidths.measure("adamw_8bit", bytes * static_cast<double>(options.elements),
                     [&] { ops::adam_8bit(step, weight.span().size(), planes, Cuda{}); });
}

void measure_layer_norm(Bandwidths& bandwidths, const Options& options) {
  const Shape shape{4 * options.rows, options.width};
  const Shape rows{4 * options.rows};
  const auto x = random_tensor<float>(shape);
  const auto residual = random_tensor<bfloat16>(shape);
  const auto weight = random_tensor<float>({options.width});
  const Tensor<float, Cuda> x_sum(shape);
  const Tensor<bfloat16, Cuda> y(shape);
  const Tensor<float, Cuda> mean(rows);
  const Tensor<float, Cuda> rstd(rows);
  const auto numel = static_cast<double>(shape.numel());
  bandwidths.measure("layer_norm", numel * 2 * (sizeof(float) + sizeof(bfloat16)), [&] {
    ops::layer_norm<bfloat16, Cuda>(
        {.x = x, .residual = residual, .weight = weight, .bias = weight, .x_sum = x_sum, .y = y, .mean = mean, .rstd = rstd});
  });

  const Tensor<float, Cuda> dx(shape);
  const Tensor<float, Cuda> dweight({options.width});
  const Tensor<float, Cuda> dbias({options.width});
  bandwidths.measure("layer_norm_backward", numel * (2 * sizeof(float) + 2 * sizeof(bfloat16)), [&] {
    ops::layer_norm_backward<bfloat16, Cuda>({.x = x_sum,
                                              .weight = weight,
                                              .mean = mean,
                                              .rstd = rstd,
                                              .dy = residual,
                                              .dx = dx,
                                              .dresidual = y,
                                              .dweight = dweight,
                                              .dbias = dbias});
  });
}

ops::Quantized<float8_e4m3, Cuda> empty_codes(const Shape& shape) {
  return {.codes = Tensor<float8_e4m3, Cuda>(shape), .transposed = {}, .scale = Tensor<float, Cuda>({2})};
}

void quantize(const Tensor<bfloat16, Cuda>& x, Tensor<float, Cuda>& largest, ops::Quantized<float8_e4m3, Cuda>& y) {
  ops::amax(x, largest);
  ops::float8_scale<float8_e4m3>(largest, y.scale);
  ops::quantize(x, y);
}

// x[rows, in] weight[out, in]^T.
nlohmann::ordered_json measure_product(const Options& options, std::int64_t in, std::int64_t out) {
  const auto x = random_tensor<bfloat16>({options.rows, in});
  const auto weight = random_tensor<bfloat16>({out, in});
  Tensor<bfloat16, Cuda> y({options.rows, out});
  const auto rate = [&](const std::function<void()>& call) {
    return 2 * static_cast<double>(options.rows * in * out) / seconds_of(options, call);
  };
  nlohmann::ordered_json figures{{"product", fmt::format("{} x {} x {}", options.rows, out, in)}};
  figures["bfloat16_per_second"] = rate([&] { ops::matmul(x, weight, y, {.transpose_b = true}); });
  if (!device::cuda_device(device::current_cuda_device()).has_float8_products()) return figures;

  Tensor<float, Cuda> largest({1});
  auto x_codes = empty_codes(x.shape());
  auto weight_codes = empty_codes(weight.shape());
  quantize(x, largest, x_codes);
  quantize(weight, largest, weight_codes);
  const auto multiply = [&] {
    ops::float8_matmul<float8_e4m3>({x_codes.codes, x_codes.scale}, {weight_codes.codes, weight_codes.scale},
                                    Tensor<float, Cuda>(), y);
  };
  figures["float8_per_second"] = rate(multiply);
  figures["float8_with_quantization_per_second"] = rate([&] {
    quantize(x, largest, x_codes);
    multiply();
  });
  return figures;
}

nlohmann::ordered_json benchmark(const Options& options) {
  Bandwidths bandwidths(options);
  measure_copy(bandwidths, options);
  measure_adamw(bandwidths, options);
  measure_adamw_8bit(bandwidths, options);
  measure_layer_norm(bandwidths, options);
  const std::int64_t width = options.width;
  auto products = nlohmann::ordered_json::array();
  for (const auto& [in, out] : {std::pair(width, 3 * width), {width, width}, {width, 4 * width}, {4 * width, width}}) {
    products.push_back(measure_product(options, in, out));
  }
  return {{"bandwidths", bandwidths.figures()},
          {"products", products},
          {"gpu", device::cuda_device(device::current_cuda_device()).name}};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("Bandwidths of AdamW and layer norm beside a copy's on one GPU, and matrix products of 8-bit operands.");
  command.option("--elements", options.elements, "of each array of the copy and AdamW");
  command.option("--rows", options.rows, "of products; layer norms have four times as many");
  command.option("--width", options.width, "of the model whose products these are, a multiple of 16");
  command.option("--calls", options.calls, "timed calls");
  if (const auto code = command.parse(argc, argv)) return *code;
  return run_on_gpu([&](const Group&) { return benchmark(options); });
}
