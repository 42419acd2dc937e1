#include "trireme/models/weights.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "models/weights_format.hpp"
#include "trireme/core/safetensors.hpp"

namespace trireme::models {
namespace {

Shape stored_shape(const std::string& name, const Shape& shape, const WeightsFormat& format) {
  return format.stored_transposed(name) ? Shape{shape[1], shape[0]} : shape;
}

// torch keeps this count beside the running statistics of batch norm; nothing depends on it.
bool passed_over(std::string_view name, const WeightsFormat& format) {
  return name.ends_with(".num_batches_tracked") || format.passed_over(name);
}

// to[columns, rows] = from[rows, columns]^T
template <typename From, typename To>
void transpose(const From* from, std::int64_t rows, std::int64_t columns, To* to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column)
      to[column * rows + row] = static_cast<To>(from[row * columns + column]);
  }
}

// `shape`: as the file stores it.
const SafetensorsEntry& entry_of(const SafetensorsFile& file, std::string_view name, const Shape& shape,
                                 const WeightsFormat& format) {
  const SafetensorsEntry* entry = file.find(name);
  const std::string_view prefix = format.optional_prefix;
  if (entry == nullptr && !prefix.empty() && name.starts_with(prefix)) entry = file.find(name.substr(prefix.size()));
  if (entry == nullptr) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "the file lacks a tensor of the model",
                 .name = std::string(name),
                 .path = file.path().string(),
                 .hint = "give the model the layers of the file"});
  }
  if (entry->shape != shape || entry->dtype != DType::float32) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "a tensor of the file does not fit the model",
                 .name = entry->name,
                 .path = file.path().string(),
                 .wanted = fmt::format("float32 {}", shape.str()),
                 .had = fmt::format("{} {}", name_of(entry->dtype), entry->shape.str()),
                 .hint = "give the model the sizes of the file; other dtypes than float32 must be converted first"});
  }
  return *entry;
}

}  // namespace

template <typename T>
void load_weights(FlatStore& store, const std::string& path, const WeightsFormat& format) {
  const SafetensorsFile file(path);
  std::set<std::string_view> known;
  std::vector<const SafetensorsEntry*> entries;
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    entries.push_back(&entry_of(file, parameter.name, stored_shape(parameter.name, parameter.shape, format), format));
    known.insert(entries.back()->name);
  }
  BufferPlane& buffers = store.buffers();
  for (int index = 0; index < buffers.size(); ++index) {
    known.insert(entry_of(file, buffers.info(index).name, buffers.info(index).shape, format).name);
  }
  for (const SafetensorsEntry& entry : file.tensors()) {
    if (known.contains(entry.name) || passed_over(entry.name, format)) continue;
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "the file holds a tensor that the model lacks",
                 .name = entry.name,
                 .path = path,
                 .hint = "give the model the layers of the file"});
  }
  for (int index = 0; index < store.num_parameters(); ++index) {  // nothing is changed before all is checked
    const ParameterInfo& parameter = store.parameter(index);
    const SafetensorsEntry& entry = *entries[static_cast<std::size_t>(index)];
    const std::vector<float> stored = file.read_values<float>(entry.name);
    T* values = store.values<T>(index).data();
    if (format.stored_transposed(parameter.name)) {
      transpose(stored.data(), entry.shape[0], entry.shape[1], values);
    } else {
      std::copy(stored.begin(), stored.end(), values);
    }
  }
  for (int index = 0; index < buffers.size(); ++index) {
    const BufferInfo& buffer = buffers.info(index);
    const std::vector<float> stored = file.read_values<float>(entry_of(file, buffer.name, buffer.shape, format).name);
    std::copy(stored.begin(), stored.end(), buffers.values<T>(index).data());
  }
  store.round_values();
}

template <typename T>
void save_weights(FlatStore& store, const std::string& path, const WeightsFormat& format) {
  std::vector<std::vector<float>> stored;
  std::vector<TensorRef> tensors;
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    const Tensor<T> values = store.values<T>(index);
    auto& buffer = stored.emplace_back(static_cast<std::size_t>(values.numel()));
    if (format.stored_transposed(parameter.name)) {
      transpose(values.data(), parameter.shape[0], parameter.shape[1], buffer.data());
    } else {
      std::transform(values.data(), values.data() + values.numel(), buffer.begin(),
                     [](T value) { return static_cast<float>(value); });
    }
    tensors.push_back({parameter.name, DType::float32, stored_shape(parameter.name, parameter.shape, format), buffer.data()});
  }
  BufferPlane& buffers = store.buffers();
  for (int index = 0; index < buffers.size(); ++index) {
    const Tensor<T> values = buffers.values<T>(index);
    auto& buffer = stored.emplace_back(static_cast<std::size_t>(values.numel()));
    std::transform(values.data(), values.data() + values.numel(), buffer.begin(),
                   [](T value) { return static_cast<float>(value); });
    tensors.push_back({buffers.info(index).name, DType::float32, buffers.info(index).shape, buffer.data()});
  }
  write_safetensors(path, tensors, {{"format", "pt"}});
}

template <typename T>
void load_weights(FlatStore& store, const std::string& path) {
  load_weights<T>(store, path, WeightsFormat{});
}

template <typename T>
void save_weights(FlatStore& store, const std::string& path) {
  save_weights<T>(store, path, WeightsFormat{});
}

#define TRIREME_INSTANTIATE(T)                                                         \
  template void load_weights<T>(FlatStore&, const std::string&, const WeightsFormat&); \
  template void save_weights<T>(FlatStore&, const std::string&, const WeightsFormat&); \
  template void load_weights<T>(FlatStore&, const std::string&);                       \
  template void save_weights<T>(FlatStore&, const std::string&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::models
