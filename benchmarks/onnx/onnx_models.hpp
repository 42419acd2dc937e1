#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trireme/files/safetensors.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

struct Folder {
  std::filesystem::path path;
  onnx::ExportOptions options;
};

// Changes the initial values. Norms, biases and running statistics are constants otherwise, which would hide that two are
// exchanged.
inline void disturb(Model& model) {
  FlatStore& store = model.store();
  double phase = 0;
  const auto wave = [&phase] { return std::sin(phase += 0.7); };
  for (int index = 0; index < store.num_parameters(); ++index) {
    Tensor<float> values = store.read_values<float>(index);
    for (float& value : values.span()) value += static_cast<float>((values.shape().size() == 1 ? 0.2 : 0.02) * wave());
    store.write_values(index, values);
  }
  for (int index = 0; index < store.buffers().size(); ++index) {
    Tensor<float> values = store.buffers().read_values<float>(index);
    for (float& value : values.span()) value += static_cast<float>(0.3 * wave());
    store.buffers().write_values(index, values);
  }
}

template <typename T>
TensorRef named(const std::string& name, const Tensor<T>& tensor) {
  return {.name = name, .dtype = dtype_of<T>, .shape = tensor.shape(), .data = tensor.data()};
}

// Batch and time of a comparison, or batch alone; all differ from the sizes of the exports.
struct Size {
  std::int64_t batch, time;
};
inline const std::vector<Size> any_size{{4, 13}, {1, 1}, {1, 17}, {6, 2}};
inline const std::vector<Size> larger{{6, 9}, {8, 17}};  // for functions that need more elements

void write(const Folder& to, const std::string& name, auto& model, const auto& pass, const std::vector<Size>& sizes,
           const auto& expected) {
  model.initialize();
  disturb(model);
  onnx::export_model(model, (to.path / (name + ".onnx")).string(), pass, to.options);
  model.eval();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    expected(to.path / fmt::format("{}.{}.safetensors", name, i), sizes[i].batch, sizes[i].time);
  }
  fmt::print("{}\n", name);
}

inline Tensor<std::int32_t> tokens_of(std::int64_t batch, std::int64_t time, std::int64_t vocabulary) {
  Tensor<std::int32_t> tokens({batch, time});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) tokens.data()[i] = static_cast<std::int32_t>(i * 7919 % 1009 % vocabulary);
  return tokens;
}

inline Tensor<float> waves(const Shape& shape) {
  Tensor<float> x(shape);
  for (std::int64_t i = 0; i < x.numel(); ++i)
    x.data()[i] = std::sin(static_cast<float>(i) * 0.37F) + 0.1F * static_cast<float>(i % 5);
  return x;
}

// layers.cpp
void write_layers(const Folder& to);
