#include "trireme/models/weights.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "models/weights_format.hpp"
#include "trireme/core/safetensors.hpp"

namespace trireme::models {
namespace {

Shape stored_shape(const ParameterInfo& parameter, const WeightsFormat& format) {
  if (!format.stored_transposed(parameter.name)) return parameter.shape;
  return {parameter.shape[1], parameter.shape[0]};
}

// to[columns, rows] = from[rows, columns]^T
template <typename From, typename To>
void transpose(const From* from, std::int64_t rows, std::int64_t columns, To* to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column)
      to[column * rows + row] = static_cast<To>(from[row * columns + column]);
  }
}

const SafetensorsEntry& entry_of(const SafetensorsFile& file, const ParameterInfo& parameter, const WeightsFormat& format) {
  const std::string_view name = parameter.name;
  const SafetensorsEntry* entry = file.find(name);
  const std::string_view prefix = format.optional_prefix;
  if (entry == nullptr && !prefix.empty() && name.starts_with(prefix)) entry = file.find(name.substr(prefix.size()));
  if (entry == nullptr) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "the file lacks a parameter of the model",
                 .name = parameter.name,
                 .path = file.path().string(),
                 .hint = "give the model the layers of the file"});
  }
  if (entry->shape != stored_shape(parameter, format) || entry->dtype != DType::float32) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "a tensor of the file does not fit the model",
                 .name = entry->name,
                 .path = file.path().string(),
                 .wanted = fmt::format("float32 {}", stored_shape(parameter, format).str()),
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
    entries.push_back(&entry_of(file, store.parameter(index), format));
    known.insert(entries.back()->name);
  }
  for (const SafetensorsEntry& entry : file.tensors()) {
    if (known.contains(entry.name) || format.passed_over(entry.name)) continue;
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
    tensors.push_back({parameter.name, DType::float32, stored_shape(parameter, format), buffer.data()});
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
