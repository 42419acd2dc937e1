#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <utility>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/nn/weights/lora.hpp"
#include "trireme/nn/weights/weights_format.hpp"

namespace trireme::nn {
namespace {

// Rows of a parameter, or a buffer.
struct Place {
  bool buffer = false;
  int index = 0;
  Range rows = {};
};

// Where the values of a tensor of the file come from.
struct Source {
  Model* model = nullptr;
  int owner = 0;     // rank of the pipeline axis; if several have it, the first
  Place place = {};  // on that rank; set only there
};

struct WrittenTensor {
  TensorRef described;  // without data
  Source source;
};

struct OwnTensor {
  TensorRef described;  // without data
  Place place;
};

// The tensors of this rank: parameters, then buffers.
std::vector<OwnTensor> own_tensors(const PrefixedModel& model, const WeightsFormat& format) {
  FlatStore& store = model.model.store();
  std::vector<OwnTensor> tensors;
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    if (is_of_adapter(parameter.name) != format.adapter) continue;
    const Shape shape = stored_shape(parameter.name, parameter.placement.shape, format);
    std::int64_t first = 0;
    for (const StoredRows& rows : stored_rows(parameter.name, shape, format)) {
      tensors.push_back(
          {.described = {.name = model.prefix + rows.name, .dtype = format.dtype, .shape = shape_of_rows(shape, rows.count)},
           .place = {.index = index, .rows = {first, first + rows.count}}});
      first += rows.count;
    }
  }
  if (format.adapter) return tensors;
  BufferPlane& buffers = store.buffers();
  for (const int index : buffers.in_weights()) {
    const BufferInfo& buffer = buffers.info(index);
    tensors.push_back({.described = {.name = model.prefix + buffer.name, .dtype = format.dtype, .shape = buffer.shape},
                       .place = {.buffer = true, .index = index, .rows = {0, buffer.shape.size() == 0 ? 1 : buffer.shape[0]}}});
  }
  return tensors;
}

// One line for each tensor: dims, a colon, the name.
std::string as_text(const std::vector<TensorRef>& tensors) {
  std::string text;
  for (const TensorRef& tensor : tensors) text += fmt::format("{} :{}\n", fmt::join(tensor.shape.dims(), " "), tensor.name);
  return text;
}

std::vector<TensorRef> from_text(const std::string& text, DType dtype) {
  std::vector<TensorRef> tensors;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    std::istringstream numbers(line.substr(0, colon));
    std::vector<std::int64_t> dims;
    for (std::int64_t dim = 0; numbers >> dim;) dims.push_back(dim);
    tensors.push_back({.name = line.substr(colon + 1), .dtype = dtype, .shape = Shape(dims)});
  }
  return tensors;
}

// The tensors of all stages, sorted by name, so that the file does not depend on the division into stages.
std::vector<WrittenTensor> stored_tensors(const std::vector<PrefixedModel>& models, const WeightsFormat& format) {
  std::vector<WrittenTensor> all;
  for (const PrefixedModel& model : models) {
    const Axis& ranks = model.model.context().pipeline;
    const int here = ranks == nullptr ? 0 : ranks->rank();
    const std::vector<OwnTensor> own = own_tensors(model, format);
    std::vector<std::vector<TensorRef>> by_rank(1);
    for (const OwnTensor& tensor : own) by_rank.front().push_back(tensor.described);
    if (ranks != nullptr) {
      const auto texts = ranks->gather_texts(as_text(by_rank.front()), "weights of all stages");
      by_rank.clear();
      for (const std::string& text : texts) by_rank.push_back(from_text(text, format.dtype));
    }
    std::set<std::string> known;
    for (int rank = 0; rank < static_cast<int>(by_rank.size()); ++rank) {
      std::vector<TensorRef>& described = by_rank[static_cast<std::size_t>(rank)];
      for (std::size_t index = 0; index < described.size(); ++index) {
        const Source source{.model = &model.model, .owner = rank, .place = rank == here ? own[index].place : Place{}};
        if (known.insert(described[index].name).second) all.push_back({std::move(described[index]), source});
      }
    }
  }
  std::ranges::sort(all, {}, [](const WrittenTensor& tensor) -> const std::string& { return tensor.described.name; });
  return all;
}

// A whole parameter, on every rank that holds a part of it.
template <typename T>
Tensor<T> whole(Model& model, int index) {
  FlatStore& store = model.store();
  const ParameterInfo& parameter = store.parameter(index);
  const Tensor<T> here = merged_values<T>(model, index);
  if (!parameter.placement.split()) return here;
  auto values = Tensor<T>::zeros(parameter.placement.shape);
  for (const auto& piece : parameter.placement.pieces()) {
    std::copy_n(here.data() + piece.here, piece.count, values.data() + piece.whole);
  }
  model.context().parts()->all_reduce(values.span(), ReduceOp::sum, parameter.name).wait_on_stream();
  return values;
}

// The values in the file's layout; `source` must be on this rank.
template <typename T>
std::vector<T> values_here(const Source& source, const WeightsFormat& format) {
  FlatStore& store = source.model->store();
  const Place& place = source.place;
  Tensor<T> values = place.buffer ? store.buffers().read_values<T>(place.index) : whole<T>(*source.model, place.index);
  if (!place.buffer && format.stored_transposed(store.parameter(place.index).name)) {
    const Tensor<T> parameter = std::exchange(values, Tensor<T>(ops::transposed_shape(values.shape(), 0, 1)));
    ops::transpose(parameter, 0, 1, values);
  }
  const Shape& shape = values.shape();
  const std::int64_t of_row = shape.size() == 0 ? 1 : shape[0] == 0 ? 0 : shape.numel() / shape[0];
  const auto rows = values.span().subspan(static_cast<std::size_t>(place.rows.begin * of_row),
                                          static_cast<std::size_t>(place.rows.count() * of_row));
  return {rows.begin(), rows.end()};
}

// Rounds values to the file's type. A finite value that becomes infinite is an error; values that are not finite are kept.
template <typename To, typename T>
std::vector<std::byte> rounded(const std::vector<T>& values, const TensorRef& tensor, const Location& path) {
  std::vector<std::byte> bytes(values.size() * sizeof(To));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<To>(static_cast<float>(values[i]));
    if (!std::isfinite(static_cast<float>(value)) && std::isfinite(values[i])) {
      const bool is_half = tensor.dtype == DType::float16, is_float = tensor.dtype == DType::float32;
      throw Error({.code = ErrorCode::invalid_argument,
                   .message = fmt::format("a value is too large for weights of {}", name_of(tensor.dtype)),
                   .name = tensor.name,
                   .path = path.string(),
                   .wanted = fmt::format("a magnitude of at most {}", is_half    ? "65504"
                                                                      : is_float ? "3.402e38"
                                                                                 : "3.389e38"),
                   .had = fmt::format("{}", values[i]),
                   .hint = is_half    ? "write the weights as bfloat16 or float32"
                           : is_float ? "the training has diverged, or the model needs another scale"
                                      : "write the weights as float32"});
    }
    std::memcpy(bytes.data() + i * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values, const TensorRef& tensor, const Location& path) {
  switch (tensor.dtype) {
    case DType::bfloat16: return rounded<bfloat16>(values, tensor, path);
    case DType::float16: return rounded<float16>(values, tensor, path);
    default: return rounded<float>(values, tensor, path);
  }
}

bool first_of_parts(const Model& model) {
  const Axis& ranks = model.context().parts();
  return ranks == nullptr || ranks->rank() == 0;
}

// The values of a tensor, on the ranks that write. Other ranks send what they have and get nothing.
template <typename T>
std::vector<T> values_of(const WrittenTensor& tensor, const WeightsFormat& format) {
  const Source& source = tensor.source;
  const Collectives* ranks = source.model->context().pipeline.get();
  const int here = ranks == nullptr ? 0 : ranks->rank();
  std::vector<T> values;
  if (here == source.owner) values = values_here<T>(source, format);
  if (source.owner == 0 || !first_of_parts(*source.model)) return values;
  const std::string& name = tensor.described.name;
  if (here == source.owner) {
    ranks->send(std::span<const T>(values), 0, 0, name);
  } else if (here == 0) {
    values.resize(static_cast<std::size_t>(tensor.described.shape.numel()));
    ranks->receive(std::span(values), source.owner, 0, name).wait_on_host();
  }
  return values;
}

template <typename T>
void write_weights(const std::vector<PrefixedModel>& models, const Location& path, const WeightsFormat& format,
                   SafetensorsMetadata metadata) {
  require(!models.empty(), "save_weights() got no model");
  require(format.dtype == DType::float32 || format.dtype == DType::bfloat16 || format.dtype == DType::float16,
          "weights are written as float32, bfloat16 or float16, not as {}", name_of(format.dtype));
  metadata.try_emplace("format", "pt");
  const std::vector<WrittenTensor> tensors = stored_tensors(models, format);
  const bool writes = std::ranges::all_of(models, [](const PrefixedModel& each) {
    const Collectives* ranks = each.model.context().pipeline.get();
    return first_of_parts(each.model) && (ranks == nullptr || ranks->rank() == 0);
  });
  // A rank that can't write still receives what the others send, so that none of them waits for it.
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
    for (const WrittenTensor& tensor : tensors) described.push_back(tensor.described);
    const std::string header = safetensors_header(described, metadata, path);
    file.emplace(path);
    file->write(std::as_bytes(std::span(header)));
  });
  for (const WrittenTensor& tensor : tensors) {
    const std::vector<T> values = values_of<T>(tensor, format);
    attempt([&] { file->write(bytes_of(values, tensor.described, path)); });
  }
  attempt([&] { file->commit(); });
  const auto tell = [&failed] {
    if (failed) std::rethrow_exception(failed);
  };
  agree(models.front().model, tell, "write weights");
}

}  // namespace

void save_weights(const std::vector<PrefixedModel>& models, const Location& path, const WeightsFormat& format) {
  const bool in_double = !models.empty() && models.front().model.store().dtype() == DType::float64;
  in_double ? write_weights<double>(models, path, format, {}) : write_weights<float>(models, path, format, {});
}

template <typename T>
void save_weights(const std::vector<PrefixedModel>& models, const Location& path) {
  write_weights<T>(models, path, WeightsFormat{}, {});
}

template <typename T>
void save_weights(Model& model, const Location& path, const SafetensorsMetadata& metadata) {
  write_weights<T>({{.prefix = "", .model = model}}, path, WeightsFormat{}, metadata);
}

template void save_weights<float>(const std::vector<PrefixedModel>&, const Location&);
template void save_weights<float>(Model&, const Location&, const SafetensorsMetadata&);
template void save_weights<double>(const std::vector<PrefixedModel>&, const Location&);
template void save_weights<double>(Model&, const Location&, const SafetensorsMetadata&);

}  // namespace trireme::nn
