#include "trireme/nn/weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "trireme/nn/weights_format.hpp"

namespace trireme::nn {
namespace {

// torch keeps this count beside the running statistics of batch norm; nothing depends on it.
bool passed_over(std::string_view name, const WeightsFormat& format) {
  return name.ends_with(".num_batches_tracked") || format.passed_over(name);
}

const SafetensorsEntry& entry_of(const SafetensorsFile& file, const std::string& name, const Shape& shape,
                                 const WeightsFormat& format) {
  const SafetensorsEntry& entry = stored_tensor(file, name, format);
  require_fits(file, entry, shape);
  return entry;
}

// Those of the store's parameters, then those of its buffers.
std::vector<const SafetensorsEntry*> entries_of(const SafetensorsFile& file, const PrefixedModel& model,
                                                const WeightsFormat& format) {
  FlatStore& store = model.model.store();
  std::vector<const SafetensorsEntry*> entries;
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    const Shape shape = stored_shape(parameter.name, parameter.placement.shape, format);
    entries.push_back(&entry_of(file, model.prefix + parameter.name, shape, format));
  }
  BufferPlane& buffers = store.buffers();
  for (const int index : buffers.in_weights()) {
    entries.push_back(&entry_of(file, model.prefix + buffers.info(index).name, buffers.info(index).shape, format));
  }
  return entries;
}

void refuse_unknown(const SafetensorsFile& file, const std::set<const SafetensorsEntry*>& known, const WeightsFormat& format) {
  for (const SafetensorsEntry& entry : file.tensors()) {
    if (known.contains(&entry) || passed_over(entry.name, format)) continue;
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "the file holds a tensor that the model lacks",
                 .name = entry.name,
                 .path = file.path().string(),
                 .hint = "give the model the layers of the file"});
  }
}

template <typename T>
void fill(FlatStore& store, const SafetensorsFile& file, const std::vector<const SafetensorsEntry*>& entries,
          const WeightsFormat& format) {
  auto entry = entries.begin();
  for (int index = 0; index < store.num_parameters(); ++index, ++entry) {
    Tensor<float> whole((*entry)->shape);
    file.read((*entry)->name, std::as_writable_bytes(whole.span()));
    const ParameterInfo& parameter = store.parameter(index);
    if (format.stored_transposed(parameter.name)) {
      const Tensor<float> stored = std::exchange(whole, Tensor<float>(parameter.placement.shape));
      ops::transpose(stored, 0, 1, whole);
    }
    const Tensor<T> values(parameter.shape);
    for (const auto& piece : parameter.placement.pieces()) {
      std::copy_n(whole.data() + piece.whole, piece.count, values.data() + piece.here);
    }
    store.write_values(index, values);
  }
  for (const int index : store.buffers().in_weights()) {
    const std::vector<float> stored = file.read_values<float>((*entry++)->name);
    const Tensor<T> values(store.buffers().info(index).shape);
    std::copy(stored.begin(), stored.end(), values.data());
    store.buffers().write_values(index, values);
  }
  store.refresh_compute_copy();
}

}  // namespace

const SafetensorsEntry& stored_tensor(const SafetensorsFile& file, const std::string& name, const WeightsFormat& format) {
  const SafetensorsEntry* entry = file.find(name);
  const std::string_view prefix = format.optional_prefix;
  if (entry == nullptr && !prefix.empty() && name.starts_with(prefix))
    entry = file.find(std::string_view(name).substr(prefix.size()));
  if (entry == nullptr) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "the file lacks a tensor of the model",
                 .name = name,
                 .path = file.path().string(),
                 .hint = "give the model the layers of the file, or name a file of such a model"});
  }
  return *entry;
}

void require_fits(const SafetensorsFile& file, const SafetensorsEntry& entry, const Shape& shape) {
  if (entry.shape == shape && entry.dtype == DType::float32) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = "a tensor of the file does not fit the model",
               .name = entry.name,
               .path = file.path().string(),
               .wanted = fmt::format("float32 {}", shape.str()),
               .had = fmt::format("{} {}", name_of(entry.dtype), entry.shape.str()),
               .hint = "give the model the sizes of the file; other dtypes than float32 must be converted first"});
}

template <typename T>
void load_weights(const std::vector<PrefixedModel>& models, const std::string& path, const WeightsFormat& format) {
  const SafetensorsFile file(path);
  std::vector<std::vector<const SafetensorsEntry*>> entries;
  std::set<const SafetensorsEntry*> known;
  for (const PrefixedModel& model : models) {
    entries.push_back(entries_of(file, model, format));
    known.insert(entries.back().begin(), entries.back().end());
  }
  const bool whole =
      std::ranges::all_of(models, [](const PrefixedModel& each) { return each.model.context().pipeline == nullptr; });
  if (whole) refuse_unknown(file, known, format);
  for (std::size_t index = 0; index < models.size(); ++index) {  // nothing is changed before all is checked
    fill<T>(models[index].model.store(), file, entries[index], format);
  }
}

template <typename T>
void load_weights(const std::vector<PrefixedModel>& models, const std::string& path) {
  load_weights<T>(models, path, WeightsFormat{});
}

template <typename T>
void load_weights(Model& model, const std::string& path) {
  load_weights<T>({{.prefix = "", .model = model}}, path);
}

#define TRIREME_INSTANTIATE(T)                                                                                \
  template void load_weights<T>(const std::vector<PrefixedModel>&, const std::string&, const WeightsFormat&); \
  template void load_weights<T>(const std::vector<PrefixedModel>&, const std::string&);                       \
  template void load_weights<T>(Model&, const std::string&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::nn
