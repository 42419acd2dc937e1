#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <utility>

#include "trireme/nn/weights_format.hpp"

namespace trireme::nn {
namespace {

// Where the values of a tensor of the file come from.
struct Source {
  Model* model = nullptr;
  int owner = 0;  // rank of the pipeline axis; where several have it, the first
  int index = 0;  // there, of a parameter or behind these among the buffers in_weights()
};

struct StoredTensor {
  TensorRef described;  // without data
  Source source;
};

// Of this rank: parameters, then buffers.
std::vector<TensorRef> described(const PrefixedModel& model, const WeightsFormat& format) {
  FlatStore& store = model.model.store();
  std::vector<TensorRef> tensors;
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    tensors.push_back(
        {.name = model.prefix + parameter.name, .shape = stored_shape(parameter.name, parameter.placement.shape, format)});
  }
  BufferPlane& buffers = store.buffers();
  for (const int index : buffers.in_weights()) {
    tensors.push_back({.name = model.prefix + buffers.info(index).name, .shape = buffers.info(index).shape});
  }
  return tensors;
}

// A line for each: dims, a colon, the name.
std::string as_text(const std::vector<TensorRef>& tensors) {
  std::string text;
  for (const TensorRef& tensor : tensors) text += fmt::format("{} :{}\n", fmt::join(tensor.shape.dims(), " "), tensor.name);
  return text;
}

std::vector<TensorRef> from_text(const std::string& text) {
  std::vector<TensorRef> tensors;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    std::istringstream numbers(line.substr(0, colon));
    std::vector<std::int64_t> dims;
    for (std::int64_t dim = 0; numbers >> dim;) dims.push_back(dim);
    tensors.push_back({.name = line.substr(colon + 1), .shape = Shape(dims)});
  }
  return tensors;
}

// Of all stages, by name: the order of the file does not depend on where they lie.
std::vector<StoredTensor> stored_tensors(const std::vector<PrefixedModel>& models, const WeightsFormat& format) {
  std::vector<StoredTensor> all;
  for (const PrefixedModel& model : models) {
    std::vector<std::vector<TensorRef>> by_rank{described(model, format)};
    if (const Axis& ranks = model.model.context().pipeline) {
      const auto texts = ranks->gather_texts(as_text(by_rank.front()), "weights of all stages");
      by_rank.assign(texts.size(), {});
      std::ranges::transform(texts, by_rank.begin(), from_text);
    }
    std::set<std::string> known;
    for (int rank = 0; rank < static_cast<int>(by_rank.size()); ++rank) {
      int index = 0;
      for (TensorRef& tensor : by_rank[static_cast<std::size_t>(rank)]) {
        const Source source{.model = &model.model, .owner = rank, .index = index++};
        if (known.insert(tensor.name).second) all.push_back({std::move(tensor), source});
      }
    }
  }
  std::ranges::sort(all, {}, [](const StoredTensor& tensor) -> const std::string& { return tensor.described.name; });
  return all;
}

// A whole parameter, on every rank of the tensor axis if there is one.
template <typename T>
Tensor<T> whole(Model& model, int index) {
  FlatStore& store = model.store();
  const ParameterInfo& parameter = store.parameter(index);
  const Tensor<T> here = store.read_values<T>(index);
  if (!parameter.placement.split()) return here;
  auto values = Tensor<T>::zeros(parameter.placement.shape);
  for (const auto& piece : parameter.placement.pieces()) {
    std::copy_n(here.data() + piece.here, piece.count, values.data() + piece.whole);
  }
  model.context().tensor->all_reduce(values.span(), ReduceOp::sum, parameter.name).wait_on_stream();
  return values;
}

// In the file's layout; `source` is on this rank.
template <typename T>
std::vector<float> values_here(const Source& source, const WeightsFormat& format) {
  FlatStore& store = source.model->store();
  const int parameters = store.num_parameters();
  const bool buffer = source.index >= parameters;
  Tensor<T> values;
  if (buffer) {
    values = store.buffers().read_values<T>(store.buffers().in_weights()[static_cast<std::size_t>(source.index - parameters)]);
  } else {
    values = whole<T>(*source.model, source.index);
  }
  if (!buffer && format.stored_transposed(store.parameter(source.index).name)) {
    const Tensor<T> parameter = std::exchange(values, Tensor<T>(ops::transposed_shape(values.shape(), 0, 1)));
    ops::transpose(parameter, 0, 1, values);
  }
  std::vector<float> stored(static_cast<std::size_t>(values.numel()));
  std::ranges::transform(values.span(), stored.begin(), [](T value) { return static_cast<float>(value); });
  return stored;
}

bool first_of_tensor_axis(const Model& model) {
  const Axis& ranks = model.context().tensor;
  return ranks == nullptr || ranks->rank() == 0;
}

// On the ranks that write; other ranks give what they have and get nothing.
template <typename T>
std::vector<float> values_of(const StoredTensor& tensor, const WeightsFormat& format) {
  const Source& source = tensor.source;
  const Collectives* ranks = source.model->context().pipeline.get();
  const int here = ranks == nullptr ? 0 : ranks->rank();
  std::vector<float> values;
  if (here == source.owner) values = values_here<T>(source, format);
  if (source.owner == 0 || !first_of_tensor_axis(*source.model)) return values;
  const std::string& name = tensor.described.name;
  if (here == source.owner) {
    ranks->send(std::span<const float>(values), 0, 0, name);
  } else if (here == 0) {
    values.resize(static_cast<std::size_t>(tensor.described.shape.numel()));
    ranks->receive(std::span(values), source.owner, 0, name).wait_on_host();
  }
  return values;
}

}  // namespace

template <typename T>
void save_weights(const std::vector<PrefixedModel>& models, const std::string& path, const WeightsFormat& format,
                  SafetensorsMetadata metadata) {
  metadata.try_emplace("format", "pt");
  const std::vector<StoredTensor> tensors = stored_tensors(models, format);
  const bool writes = std::ranges::all_of(models, [](const PrefixedModel& each) {
    const Collectives* ranks = each.model.context().pipeline.get();
    return first_of_tensor_axis(each.model) && (ranks == nullptr || ranks->rank() == 0);
  });
  // A rank that can't write still takes what the others give: none of them waits for it.
  std::exception_ptr failed;
  const auto attempt = [&](const auto& work) {
    if (!writes || failed) return;
    try {
      work();
    } catch (...) {
      failed = std::current_exception();
    }
  };
  std::optional<FileReplacement> file;
  attempt([&] {
    std::vector<TensorRef> described;
    for (const StoredTensor& tensor : tensors) described.push_back(tensor.described);
    const std::string header = safetensors_header(described, metadata, path);
    file.emplace(path);
    file->write(std::as_bytes(std::span(header)));
  });
  for (const StoredTensor& tensor : tensors) {
    const std::vector<float> values = values_of<T>(tensor, format);
    attempt([&] { file->write(std::as_bytes(std::span(values))); });
  }
  attempt([&] { file->commit(); });
  if (failed) std::rethrow_exception(failed);
}

template <typename T>
void save_weights(const std::vector<PrefixedModel>& models, const std::string& path) {
  save_weights<T>(models, path, WeightsFormat{});
}

template <typename T>
void save_weights(Model& model, const std::string& path, const SafetensorsMetadata& metadata) {
  save_weights<T>({{.prefix = "", .model = model}}, path, WeightsFormat{}, metadata);
}

#define TRIREME_INSTANTIATE(T)                                                                               \
  template void save_weights<T>(const std::vector<PrefixedModel>&, const std::string&, const WeightsFormat&, \
                                SafetensorsMetadata);                                                        \
  template void save_weights<T>(const std::vector<PrefixedModel>&, const std::string&);                      \
  template void save_weights<T>(Model&, const std::string&, const SafetensorsMetadata&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::nn
