#include <limits>
#include <utility>

#include "onnx_models.hpp"

// Models as a user writes them, with every function that can be exported.
namespace {

// A list of layers as a user writes it.
struct Layers : nn::Module<Float32> {
  explicit Layers(const ModelContext& context = {}) : Module(context) {
    body.add<Linear>(nn::LinearOptions{.in = 24, .out = 32});
    body.add([](const auto& x) { return relu(x); });
    body.add<BatchNorm1d>(nn::BatchNormOptions{.channels = 32});
    body.add<Linear>(nn::LinearOptions{.in = 32, .out = 24});
    body.add([](const auto& x) { return gelu(x); });
    body.add<Dropout>(0.5);
  }
  // x [batch, time, 24] -> shares [batch, 6]
  Value forward(const Tensor<float>& x) const {
    const Value y = body.forward(Value(x));
    const Value mixed = gated.forward(y) + leaky_relu(y, 0.1) * sigmoid(y) - softplus(tanh(y)) / 2;
    const Value groups = group_norm.forward(mixed);
    const Value cut = cat<float>({narrow(groups, 2, 0, 7), exp(minimum(narrow(groups, 2, 7, 17), 1))}, 2);
    return softmax(output.forward(mean(abs(cut) + sqrt(square(cut) + 1), {1})));
  }
  Sequential body{*this, "body"};
  GatedMlp gated{*this, "gated", {.width = 24, .hidden = 40}};
  GroupNorm group_norm{*this, "group_norm", {.groups = 4, .channels = 24}};
  Linear output{*this, "output", {.in = 24, .out = 6}};
};

void write_list(const Folder& to) {
  Layers model;
  const auto pass = [&](onnx::Example& example) {
    example.output("shares", model.forward(example.input<float>("x", {example.dynamic("batch"), example.dynamic("time"), 24})));
  };
  write(to, "layers", model, pass, any_size, [&](const auto& path, std::int64_t batch, std::int64_t time) {
    const auto x = waves({batch, time, 24});
    const auto shares = model.forward(x).value();
    write_safetensors(path, std::vector{named("x", x), named("out.shares", shares)});
  });
}

struct Recurrent : nn::Module<Float32> {
  explicit Recurrent(const ModelContext& context = {}) : Module(context) {}
  Value forward(const Tensor<float>& x) const { return output.forward(gru.forward(lstm.forward(Value(x)).out).out); }
  Lstm lstm{*this, "lstm", {.in = 12, .hidden = 20, .layers = 2}};
  Gru gru{*this, "gru", {.in = 20, .hidden = 16, .bidirectional = true}};
  Linear output{*this, "output", {.in = 32, .out = 6}};
};

void write_recurrent(const Folder& to) {
  Recurrent model;
  const auto pass = [&](onnx::Example& example) {
    example.output("y", model.forward(example.input<float>("x", {example.dynamic("batch"), example.dynamic("time"), 12})));
  };
  write(to, "recurrent", model, pass, any_size, [&](const auto& path, std::int64_t batch, std::int64_t time) {
    const auto x = waves({batch, time, 12});
    const auto y = model.forward(x).value();
    write_safetensors(path, std::vector{named("x", x), named("out.y", y)});
  });
}

// Every function that can be exported, each as an output with its name.
struct Functions : nn::Module<Float32> {
  explicit Functions(const ModelContext& context = {}) : Module(context) {}

  // x [batch, time, 24], image [batch, 9, 9, 6]
  std::vector<std::pair<std::string, Variable<float>>> forward(const Value& x, const Value& image) const {
    const auto wide = matrix.master();  // [24, 24]
    Tensor<bool> mask({24});
    for (std::int64_t i = 0; i < 24; ++i) mask.data()[i] = i % 3 == 0;
    const Value positive = square(x) + 0.5;
    return {{"abs", abs(x)},
            {"neg", neg(x)},
            {"sign", sign(x)},
            {"clamp", clamp(x, -0.3, 0.4)},
            {"exp", exp(x)},
            {"log", log(positive)},
            {"sqrt", sqrt(positive)},
            {"rsqrt", rsqrt(positive)},
            {"reciprocal", reciprocal(positive)},
            {"sin", sin(x)},
            {"cos", cos(x)},
            {"erf", erf(x)},
            {"floor", floor(x * 3)},
            {"ceil", ceil(x * 3)},
            {"round", round(x * 3)},
            {"expm1", expm1(x)},
            {"log1p", log1p(positive)},
            {"elu", elu(x, 0.7)},
            {"selu", selu(x)},
            {"mish", mish(x)},
            {"hardswish", hardswish(x * 3)},
            {"hardsigmoid", hardsigmoid(x * 3)},
            {"relu6", relu6(x * 9)},
            {"softsign", softsign(x)},
            {"logsigmoid", logsigmoid(x)},
            {"leaky_relu", leaky_relu(x, 0.2)},
            {"softplus", softplus(x)},
            {"gelu_erf", gelu_erf(x)},
            {"gelu", gelu(x)},
            {"silu", silu(x)},
            {"minimum", minimum(x, sin(x))},
            {"maximum", maximum(x, 0.1)},
            {"pow", pow(positive, 1.5)},
            {"power_of", pow(1.5, x)},
            {"divide", 2 / positive},
            {"subtract", 1 - x},
            {"where", where(mask, x, sin(x))},
            {"where_number", where(mask, 3, x)},
            {"matmul", matmul(x, wide)},
            {"batched", matmul(x, transpose(x, 1, 2))},
            {"softmax", softmax(x)},
            {"softmax_of_rows", softmax(x, 1)},
            {"log_softmax", log_softmax(x)},
            {"layer_norm", layer_norm<float, Cpu>(x, {}, {}, 1e-5)},
            {"flatten", flatten(x, 0, 1)},
            {"unsqueeze", unsqueeze(x, 1)},
            {"permute", permute(x, {2, 0, 1})},
            {"expand", expand(unsqueeze(x, 1), {x.shape()[0], 3, x.shape()[1], 24})},
            {"repeat", repeat(x, {2, 1, 1, 3})},
            {"flip", flip(x, {0, 2})},
            {"slice", slice(x, 2, 1, 20, 3)},
            {"last", slice(x, 1, -2, Slice::to_end)},
            {"newest", narrow(x, 1, x.shape()[1] - 1, 1)},
            {"but_newest", flatten(narrow(x, 1, 0, x.shape()[1] - 1), 0, 1)},
            {"selected", select(x, 1, -1)},
            {"halves", flatten(slice(x, 1, 0, Slice::to_end, 2), 0, 1)},
            {"rows", narrow(x, 0, 1, x.shape()[0] - 1)},
            {"box", slice(x, {{0, 1}, {}, {2, 9}})},
            {"scatter", slice_scatter(x, slice(x, {{}, {}, {2, 9}}) * 5, {{}, {}, {2, 9}})},
            {"scatter_behind", slice_scatter(x, slice(x, {{}, {2, x.shape()[1]}}) * 5, {{}, {2, x.shape()[1]}})},
            {"cat", cat<float>({x, x * 2}, -1)},
            {"stack", stack<float>({x, x * 2}, 1)},
            {"pad", pad(x, {1, 2, 3, 0}, {.value = 4})},
            {"pad_reflect", pad(image, {0, 0, 2, 1, 1, 2}, {.mode = PadMode::reflect})},
            {"pad_replicate", pad(image, {0, 0, 2, 1}, {.mode = PadMode::replicate})},
            {"var", var(x, {2})},
            {"stddev", stddev(x, {-1}, true, 0)},
            {"norm1", norm(x, 1, {1})},
            {"norm2", norm(x, 2, {2})},
            {"norm_inf", norm(x, std::numeric_limits<double>::infinity(), {2}, true)},
            {"largest", max_with_index(x, 1).values},
            {"smallest", min_with_index(x, 2, true).values},
            {"sum", sum(x, {1, 2})},
            {"sum_of_all", sum(x)},
            {"mean", mean(x, {0}, true)},
            {"prod", prod(x, {2})},
            {"max", max(x, {1})},
            {"min", min(x, {-1})},
            {"logsumexp", logsumexp(x, {2})},
            {"index_select", index_select(x, 2, Tensor<std::int32_t>::from({3}, {7, 0, 7}))},
            {"index_select_of_rows", index_select(matrix.master(), 0, Tensor<std::int64_t>::from({4}, {3, 0, 23, 3}))},
            {"gather", gather(x, 1, topk(x, 2, 1).indices)},
            {"gather_of_matrix", gather(matrix.master(), 0, Tensor<std::int32_t>::from({2, 3}, {1, 2, 3, 0, 5, 7}))},
            {"cumsum", cumsum(x, 1)},
            {"roll", roll(x, {5, -1}, {2, -1})},
            {"triu", triu(x, 1)},
            {"tril", tril(x, -2)},
            {"interpolate", interpolate(image, {.scale = 2})},
            {"interpolate_bilinear", interpolate(image, {.size = 3, .mode = InterpolateMode::bilinear})},
            {"interpolate_twice", interpolate(image, {.scale = 2, .mode = InterpolateMode::bilinear})},
            {"interpolate_corners", interpolate(image, {.size = 13, .mode = InterpolateMode::bilinear, .align_corners = true})},
            {"topk", topk(x, 5).values},
            {"topk_smallest", topk(x, 5, 2, false).values},
            {"sort", sort(x, 1).values},
            {"group_norm", group_norm<float, Cpu>(image, {}, {}, 3, 1e-5)},
            {"conv_transpose", conv_transpose.forward(image)},
            {"conv_groups", conv.forward(image)},
            {"max_pool", max_pool2d(image, {.kernel = 3, .stride = 2, .padding = 1})},
            {"max_pool_ceil", max_pool2d(image, {.kernel = 2, .ceil_mode = true})},
            {"max_pool_ceil_padded", max_pool2d(image, {.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true})},
            {"max_pool_ceil_behind", max_pool2d(image, {.kernel = 2, .stride = 4, .padding = 1, .ceil_mode = true})},
            {"avg_pool_ceil", avg_pool2d(image, {.kernel = 2, .ceil_mode = true})},
            {"avg_pool_ceil_inside",
             avg_pool2d(image, {.kernel = 4, .stride = 4, .padding = 1, .ceil_mode = true, .count_include_pad = false})},
            {"avg_pool", avg_pool2d(image, {.kernel = 3, .stride = 2, .padding = 1})},
            {"avg_pool_inside", avg_pool2d(image, {.kernel = 3, .stride = 2, .padding = 1, .count_include_pad = false})},
            {"adaptive_avg_pool", adaptive_avg_pool2d(image, 3)},
            {"adaptive_max_pool", adaptive_max_pool2d(image, 1)}};
  }

  Parameter<float> matrix = this->add_parameter("matrix", {24, 24}, Initializer::normal(0, 0.2));
  ConvTranspose2d conv_transpose{
      *this, "conv_transpose", {.in = 6, .out = 4, .kernel = 3, .stride = 2, .padding = 1, .output_padding = 1}};
  Conv2d conv{*this, "conv", {.in = 6, .out = 8, .kernel = 3, .stride = 2, .padding = 2, .dilation = 2, .groups = 2}};
};

void write_functions(const Folder& to) {
  Functions model;
  const auto pass = [&](onnx::Example& example) {
    const auto x = example.input<float>("x", {example.dynamic("batch"), example.dynamic("time"), 24});
    const auto image = example.input<float>("image", {example.dynamic("batch"), 9, 9, 6});
    for (const auto& [name, value] : model.forward(x, image)) example.output(name, value);
  };
  write(to, "functions", model, pass, larger, [&](const auto& path, std::int64_t batch, std::int64_t time) {
    const auto x = waves({batch, time, 24}), image = waves({batch, 9, 9, 6});
    const auto results = model.forward(x, image);
    std::vector<TensorRef> tensors{named("x", x), named("image", image)};
    for (const auto& [name, value] : results) tensors.push_back(named("out." + name, value.value()));
    write_safetensors(path, tensors);
  });
}

// Layers of the library that no model family uses.
struct Modules : nn::Module<Float32> {
  explicit Modules(const ModelContext& context = {}) : Module(context) {}

  // x [batch, time, 24], image [batch, 8, 8, 8], padding [batch, time]
  std::vector<std::pair<std::string, Variable<float>>> forward(const Value& x, const Value& image,
                                                               const Tensor<std::int32_t>& padding) const {
    const Value volume = reshape(image, {image.shape()[0], 4, 4, 4, 8});
    return {{"conv1d", conv1d.forward(x)},
            {"rows_of_conv1d", flatten(conv1d.forward(x), 0, 1)},
            {"conv_transpose1d", conv_transpose1d.forward(x)},
            {"conv3d", conv3d.forward(volume)},
            {"upsample", upsample.forward(image)},
            {"pixel_shuffle", pixel_shuffle.forward(image)},
            {"instance_norm", instance_norm.forward(image)},
            {"weight_norm", weight_norm.forward(x)},
            {"spectral_norm", spectral_norm.forward(x)},
            {"rms_norm", rms_norm.forward(x)},
            {"attention", attention.forward(x)},
            {"cross_attention", attention.attend(x, cat<float>({x, x * 2}, 1))},
            {"window", window.forward(x)},
            {"encoder", encoder.forward({.stream = x}, x.shape()[1], padding).settled().stream},
            {"encoder_norm_first", norm_first.forward({.stream = x}, x.shape()[1], padding).settled().stream}};
  }

  Conv1d conv1d{*this, "conv1d", {.in = 24, .out = 8, .kernel = 3, .stride = 2, .padding = 1, .groups = 2}};
  ConvTranspose1d conv_transpose1d{*this, "conv_transpose1d", {.in = 24, .out = 6, .kernel = 4, .stride = 2, .padding = 1}};
  Conv3d conv3d{*this, "conv3d", {.in = 8, .out = 4, .kernel = 3, .padding = 1}};
  Upsample upsample{*this, "upsample", {.scale = 2}};
  PixelShuffle pixel_shuffle{*this, "pixel_shuffle", 2};
  InstanceNorm2d instance_norm{*this, "instance_norm", {.channels = 8}};
  WeightNormLinear weight_norm{*this, "weight_norm", {.in = 24, .out = 8}};
  SpectralNormLinear spectral_norm{*this, "spectral_norm", {.in = 24, .out = 8}};
  RmsNorm rms_norm{*this, "rms_norm", {.width = 24}};
  MultiheadAttention attention{*this, "attention", {.embed_dim = 24, .num_heads = 4, .rotary_base = 10000}};
  MultiheadAttention window{*this, "window", {.embed_dim = 24, .num_heads = 4, .causal = true, .window = 3}};
  TransformerEncoderLayer encoder{*this, "encoder", {.d_model = 24, .nhead = 4, .dim_feedforward = 32, .dropout = 0.1}};
  TransformerEncoderLayer norm_first{
      *this, "norm_first", {.d_model = 24, .nhead = 3, .dim_feedforward = 32, .norm_first = true, .attention_dropout = 0.1}};
};

void write_modules(const Folder& to) {
  Modules model;
  const auto pass = [&](onnx::Example& example) {
    const std::int64_t batch = example.dynamic("batch"), time = example.dynamic("time");
    const auto x = example.input<float>("x", {batch, time, 24}), image = example.input<float>("image", {batch, 8, 8, 8});
    const auto padding = example.padding_mask("seen", {batch, time});
    for (const auto& [name, value] : model.forward(x, image, padding)) example.output(name, value);
  };
  write(to, "modules", model, pass, larger, [&](const auto& path, std::int64_t batch, std::int64_t time) {
    const auto x = waves({batch, time, 24}), image = waves({batch, 8, 8, 8});
    Tensor<std::int32_t> seen({batch, time}), padding({batch, time});
    for (std::int64_t i = 0; i < batch * time; ++i) {
      seen.data()[i] = i % time < time - i / time ? 1 : 0;
      padding.data()[i] = 1 - seen.data()[i];
    }
    const auto results = model.forward(x, image, padding);
    std::vector<TensorRef> tensors{named("x", x), named("image", image), named("seen", seen)};
    for (const auto& [name, value] : results) tensors.push_back(named("out." + name, value.value()));
    write_safetensors(path, tensors);
  });
}

}  // namespace

void write_layers(const Folder& to) {
  write_list(to);
  write_recurrent(to);
  write_functions(to);
  write_modules(to);
}
