#include "trireme/models/weights.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <utility>
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
const SafetensorsEntry& entry_of(const SafetensorsFile& file, const std::string& name, const Shape& shape,
                                 const WeightsFormat& format) {
  const SafetensorsEntry* entry = file.find(name);
  const std::string_view prefix = format.optional_prefix;
  if (entry == nullptr && !prefix.empty() && name.starts_with(prefix))
    entry = file.find(std::string_view(name).substr(prefix.size()));
  if (entry == nullptr) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "the file lacks a tensor of the model",
                 .name = name,
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

// Those of the store's parameters, then those of its buffers.
std::vector<const SafetensorsEntry*> entries_of(const SafetensorsFile& file, const PrefixedStore& model,
                                                const WeightsFormat& format) {
  std::vector<const SafetensorsEntry*> entries;
  for (int index = 0; index < model.store.num_parameters(); ++index) {
    const ParameterInfo& parameter = model.store.parameter(index);
    const Shape shape = stored_shape(parameter.name, parameter.placement.shape, format);
    entries.push_back(&entry_of(file, model.prefix + parameter.name, shape, format));
  }
  BufferPlane& buffers = model.store.buffers();
  for (int index = 0; index < buffers.size(); ++index) {
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
    std::vector<float> whole = file.read_values<float>((*entry)->name);
    const ParameterInfo& parameter = store.parameter(index);
    if (format.stored_transposed(parameter.name)) {
      const std::vector<float> stored = std::exchange(whole, std::vector<float>(whole.size()));
      transpose(stored.data(), (*entry)->shape[0], (*entry)->shape[1], whole.data());
    }
    T* values = store.values<T>(index).data();
    for (const auto& piece : parameter.placement.pieces()) {
      std::copy_n(whole.data() + piece.whole, piece.count, values + piece.here);
    }
  }
  for (int index = 0; index < store.buffers().size(); ++index, ++entry) {
    const std::vector<float> stored = file.read_values<float>((*entry)->name);
    std::copy(stored.begin(), stored.end(), store.buffers().values<T>(index).data());
  }
  store.round_values();
}

// What is written of one model: float32, in the file's layout.
class StoredTensors {
 public:
  template <typename T>
  void add(const PrefixedStore& model, const WeightsFormat& format) {
    for (int index = 0; index < model.store.num_parameters(); ++index) {
      const ParameterInfo& parameter = model.store.parameter(index);
      const Shape& shape = parameter.placement.shape;
      const Tensor<T> values = whole<T>(model.store, index);
      float* stored = place(model.prefix + parameter.name, stored_shape(parameter.name, shape, format));
      if (format.stored_transposed(parameter.name)) {
        transpose(values.data(), shape[0], shape[1], stored);
      } else {
        convert(values, stored);
      }
    }
    BufferPlane& buffers = model.store.buffers();
    for (int index = 0; index < buffers.size(); ++index) {
      convert(buffers.values<T>(index), place(model.prefix + buffers.info(index).name, buffers.info(index).shape));
    }
  }

  std::span<const TensorRef> tensors() const { return tensors_; }

 private:
  float* place(std::string name, const Shape& shape) {
    auto& values = values_.emplace_back(static_cast<std::size_t>(shape.numel()));
    tensors_.push_back({std::move(name), DType::float32, shape, values.data()});
    return values.data();
  }

  // On every rank of the tensor axis, if there is one.
  template <typename T>
  static Tensor<T> whole(FlatStore& store, int index) {
    const ParameterInfo& parameter = store.parameter(index);
    const Tensor<T> here = store.values<T>(index);
    if (!parameter.placement.split()) return here;
    auto values = Tensor<T>::zeros(parameter.placement.shape);
    for (const auto& piece : parameter.placement.pieces()) {
      std::copy_n(here.data() + piece.here, piece.count, values.data() + piece.whole);
    }
    store.tensor_axis()->all_reduce(values.span(), parameter.name)->wait();
    return values;
  }

  template <typename T>
  static void convert(const Tensor<T>& values, float* stored) {
    std::ranges::transform(values.span(), stored, [](T value) { return static_cast<float>(value); });
  }

  std::vector<std::vector<float>> values_;
  std::vector<TensorRef> tensors_;
};

}  // namespace

template <typename T>
void load_weights(const std::vector<PrefixedStore>& stores, const std::string& path, const WeightsFormat& format) {
  const SafetensorsFile file(path);
  std::vector<std::vector<const SafetensorsEntry*>> entries;
  std::set<const SafetensorsEntry*> known;
  for (const PrefixedStore& model : stores) {
    entries.push_back(entries_of(file, model, format));
    known.insert(entries.back().begin(), entries.back().end());
  }
  const bool whole = std::ranges::all_of(stores, [](const PrefixedStore& model) { return model.store.whole(); });
  if (whole) refuse_unknown(file, known, format);
  for (std::size_t index = 0; index < stores.size(); ++index) {  // nothing is changed before all is checked
    fill<T>(stores[index].store, file, entries[index], format);
  }
}

template <typename T>
void save_weights(const std::vector<PrefixedStore>& stores, const std::string& path, const WeightsFormat& format) {
  for (const PrefixedStore& model : stores) {
    require(model.store.whole(), "{}: weights are not joined over the stages of a pipeline; save them without one", path);
  }
  StoredTensors stored;
  for (const PrefixedStore& model : stores) stored.add<T>(model, format);
  const bool writes = std::ranges::all_of(stores, [](const PrefixedStore& model) {
    return model.store.tensor_axis() == nullptr || model.store.tensor_axis()->rank() == 0;
  });
  if (writes) write_safetensors(path, stored.tensors(), {{"format", "pt"}});
}

template <typename T>
void load_weights(const std::vector<PrefixedStore>& stores, const std::string& path) {
  load_weights<T>(stores, path, WeightsFormat{});
}

template <typename T>
void save_weights(const std::vector<PrefixedStore>& stores, const std::string& path) {
  save_weights<T>(stores, path, WeightsFormat{});
}

template <typename T>
void load_weights(FlatStore& store, const std::string& path) {
  load_weights<T>({{.prefix = "", .store = store}}, path);
}

template <typename T>
void save_weights(FlatStore& store, const std::string& path) {
  save_weights<T>({{.prefix = "", .store = store}}, path);
}

#define TRIREME_INSTANTIATE(T)                                                                                \
  template void load_weights<T>(const std::vector<PrefixedStore>&, const std::string&, const WeightsFormat&); \
  template void save_weights<T>(const std::vector<PrefixedStore>&, const std::string&, const WeightsFormat&); \
  template void load_weights<T>(const std::vector<PrefixedStore>&, const std::string&);                       \
  template void save_weights<T>(const std::vector<PrefixedStore>&, const std::string&);                       \
  template void load_weights<T>(FlatStore&, const std::string&);                                              \
  template void save_weights<T>(FlatStore&, const std::string&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::models
