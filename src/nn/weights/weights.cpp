#include "trireme/nn/weights/weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "nn/weights/weight_files.hpp"
#include "trireme/nn/weights/lora.hpp"
#include "trireme/nn/weights/weights_format.hpp"

namespace trireme::nn {
namespace {

constexpr const char* lacks_a_tensor = "the file lacks a tensor of the model";
constexpr const char* fits_hint = "give the model the layers of the file, or name a file of such a model";

// torch keeps this count beside the running statistics of batch norm; nothing depends on it.
bool passed_over(std::string_view name, const WeightsFormat& format) {
  return name.ends_with(".num_batches_tracked") || format.passed_over(name) ||
         format.passed_over(fmt::format("{}{}", format.optional_prefix, name));
}

bool is_read(DType dtype) { return dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::float16; }

// The names that files may use for a tensor.
std::vector<std::string> spellings(const std::string& name, const WeightsFormat& format) {
  std::vector<std::string> all{name};
  const std::string_view prefix = format.optional_prefix;
  if (!prefix.empty() && name.starts_with(prefix)) all.push_back(name.substr(prefix.size()));
  if (format.older_name != nullptr) {
    for (std::size_t known = all.size(), at = 0; at < known; ++at) all.push_back(format.older_name(all[at]));
  }
  for (const RepeatedTensor& repeated : format.repeated) {
    if (repeated.of == name) all.push_back(repeated.name);
  }
  return all;
}

StoredTensor find_stored(const WeightFiles& files, const std::string& name, const WeightsFormat& format) {
  StoredTensor found;
  for (const std::string& spelling : spellings(name, format)) {
    if (!found) found = files.find(spelling);
  }
  return found;
}

bool same_values(const StoredTensor& a, const StoredTensor& b) {
  const Shape& shape = a.entry->shape;
  if (shape != b.entry->shape || !is_read(a.entry->dtype) || !is_read(b.entry->dtype)) return false;
  const std::int64_t rows = shape.size() == 0 ? 1 : shape[0];
  const std::int64_t at_once = std::max<std::int64_t>(1, (1 << 20) * rows / std::max<std::int64_t>(1, shape.numel()));
  const auto same = [](float x, float y) { return x == y || (x != x && y != y); };
  for (std::int64_t row = 0; row < rows; row += at_once) {
    const Range part{row, std::min(row + at_once, rows)};
    if (!std::ranges::equal(read_rows(a, part), read_rows(b, part), same)) return false;
  }
  return true;
}

// The first repeated tensor whose values differ from the original's; null: none.
const RepeatedTensor* find_differing(const WeightFiles& files, const WeightsFormat& format) {
  WeightsFormat alone = format;  // by their own names
  alone.repeated.clear();
  const auto differs = [&](const RepeatedTensor& repeated) {
    const StoredTensor copy = find_stored(files, repeated.name, alone), of = find_stored(files, repeated.of, alone);
    return copy && of && !same_values(copy, of);
  };
  const auto found = std::ranges::find_if(format.repeated, differs);
  return found == format.repeated.end() ? nullptr : &*found;
}

// Rows of a parameter, or a buffer, and the tensor that holds them, which may be missing.
struct Part {
  bool buffer = false;
  int index = 0;
  Range rows = {};
  StoredTensor stored = {};
};

[[noreturn]] void refuse(const Location& path, std::string message, const std::vector<std::string>& names, std::string hint) {
  constexpr std::size_t most = 8;
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(std::min(most, names.size())));
  std::string all = fmt::format("{}", fmt::join(first, ", "));
  if (names.size() > most) all += fmt::format(" and {} more", names.size() - most);
  throw Error({.code = ErrorCode::invalid_argument,
               .message = std::move(message),
               .name = std::move(all),
               .path = path.string(),
               .hint = std::move(hint)});
}

// Names of a model's tensors.
struct Found {
  std::vector<std::string> present = {};  // as the files spell them
  std::vector<std::string> missing = {};
  std::vector<std::string> torn = {};  // missing, where the files hold other rows of the same parameter
};

// Finds a model's parts in the files, in the order of the store, and adds their names to `found`.
std::vector<Part> parts_of(const WeightFiles& files, const PrefixedModel& model, const WeightsFormat& format,
                           const LoadOptions& options, Found& found) {
  FlatStore& store = model.model.store();
  std::vector<Part> parts;
  const auto add = [&](Part part, const std::string& name, const Shape& shape) {
    part.stored = find_stored(files, model.prefix + name, format);
    if (!part.stored || (options.allow_missing && part.stored.entry->shape != shape)) {
      found.missing.push_back(model.prefix + name);
      return;
    }
    require_fits(*part.stored.file, *part.stored.entry, shape);
    found.present.push_back(part.stored.entry->name);
    parts.push_back(part);
  };
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    if (is_of_adapter(parameter.name) != format.adapter) continue;
    const Shape shape = stored_shape(parameter.name, parameter.placement.shape, format);
    std::int64_t first = 0;
    const std::size_t before = parts.size(), missing = found.missing.size();
    for (const StoredRows& rows : stored_rows(parameter.name, shape, format)) {
      add({.index = index, .rows = {first, first + rows.count}}, rows.name, shape_of_rows(shape, rows.count));
      first += rows.count;
    }
    if (parts.size() > before) {
      found.torn.insert(found.torn.end(), found.missing.begin() + static_cast<std::ptrdiff_t>(missing), found.missing.end());
    }
  }
  if (format.adapter) return parts;
  BufferPlane& buffers = store.buffers();
  for (const int index : buffers.in_weights()) {
    add({.buffer = true, .index = index}, buffers.info(index).name, buffers.info(index).shape);
  }
  return parts;
}

// The names of all ranks of a pipeline, each once, in the same order on all ranks. Without a pipeline, `here`.
std::vector<std::string> of_all_stages(const Axis& stages, const std::vector<std::string>& here) {
  if (stages == nullptr) return here;
  std::vector<std::string> all;
  std::set<std::string> known;
  for (const std::string& text : stages->gather_texts(fmt::format("{}", fmt::join(here, "\n")), "names of weights")) {
    std::istringstream lines(text);
    for (std::string name; std::getline(lines, name);) {
      if (known.insert(name).second) all.push_back(name);
    }
  }
  return all;
}

Found of_all_stages(const Axis& stages, const Found& here) {
  return {.present = of_all_stages(stages, here.present),
          .missing = of_all_stages(stages, here.missing),
          .torn = of_all_stages(stages, here.torn)};
}

std::vector<std::string> unexpected(const WeightFiles& files, const Found& found, const WeightsFormat& format) {
  std::set<std::string> known(found.present.begin(), found.present.end());
  for (const RepeatedTensor& repeated : format.repeated) known.insert(repeated.name);
  std::vector<std::string> names;
  for (const StoredTensor& tensor : files.all()) {
    if (!known.contains(tensor.entry->name) && !passed_over(tensor.entry->name, format)) names.push_back(tensor.entry->name);
  }
  return names;
}

// The rows from the first to the last one of `all` that lie here.
Range rows_here(const Placement& placement, const Range& all) {
  if (placement.dim != 0) return all;
  Range here{all.end, all.begin};
  for (const Range& range : placement.ranges) {
    const Range common{std::max(range.begin, all.begin), std::min(range.end, all.end)};
    if (common.begin >= common.end) continue;
    here = {std::min(here.begin, common.begin), std::max(here.end, common.end)};
  }
  return here.begin < here.end ? here : Range{all.begin, all.begin};
}

// Writes the elements of a part that lie here into the parameter's values.
template <typename T>
void fill(const Part& part, const ParameterInfo& parameter, const WeightsFormat& format, const Tensor<T>& values) {
  const Shape& shape = parameter.placement.shape;
  std::vector<float> read;
  std::int64_t first = 0;  // the parameter's element that read[0] holds
  if (format.stored_transposed(parameter.name)) {
    const auto stored = Tensor<float>::from(part.stored.entry->shape, read_rows(part.stored, {0, part.stored.entry->shape[0]}));
    Tensor<float> turned(shape);
    ops::transpose(stored, 0, 1, turned);
    read.assign(turned.span().begin(), turned.span().end());
  } else {
    const Range rows = rows_here(parameter.placement, part.rows);
    read = read_rows(part.stored, {rows.begin - part.rows.begin, rows.end - part.rows.begin});
    if (read.empty()) return;
    first = rows.begin * (shape.numel() / (shape.size() == 0 ? 1 : shape[0]));
  }
  const std::int64_t last = first + static_cast<std::int64_t>(read.size());
  for (const auto& piece : parameter.placement.pieces()) {
    const std::int64_t begin = std::max(piece.whole, first);
    const std::int64_t end = std::min(piece.whole + piece.count, last);
    if (begin < end)
      std::copy_n(read.data() + (begin - first), end - begin, values.data() + piece.here + (begin - piece.whole));
  }
}

// Works tensor by tensor: at most one parameter and one tensor of the file are in memory besides the store.
template <typename T>
void fill(FlatStore& store, const std::vector<Part>& parts, const WeightsFormat& format) {
  for (auto part = parts.begin(); part != parts.end();) {
    if (part->buffer) {
      const Shape& shape = store.buffers().info(part->index).shape;
      const std::vector<float> stored = read_rows(part->stored, {0, shape.size() == 0 ? 1 : shape[0]});
      const Tensor<T> values(shape);
      std::copy(stored.begin(), stored.end(), values.data());
      store.buffers().write_values(part->index, values);
      ++part;
      continue;
    }
    const ParameterInfo& parameter = store.parameter(part->index);
    const Tensor<T> values = store.read_values<T>(part->index);  // keeps rows that the file lacks
    const int number = part->index;
    for (; part != parts.end() && !part->buffer && part->index == number; ++part) {
      fill(*part, parameter, format, values);
    }
    store.write_values(number, values);
  }
  store.refresh_compute_copy();
}

// Initializes the adapters of a model whose other weights are loaded.
template <typename T>
void make_adapters(Model& model) {
  for (int index = 0; index < model.store().num_parameters(); ++index) {
    const std::string name = model.store().parameter(index).name;
    if (is_of_adapter(name)) model.store().initialize<T>(model.context().seed, name);
  }
}

}  // namespace

void agree(const Model& model, const std::function<void()>& action, std::string_view name) {
  std::exception_ptr failed;
  const auto attempt = [&failed](const auto& work) {
    try {
      work();
    } catch (...) {
      failed = std::current_exception();
    }
  };
  const auto tell = [&failed] {
    if (failed) std::rethrow_exception(failed);
  };
  attempt(action);
  // First the ranks that hold parts of the same layers, then the ranks with other layers.
  for (const Axis& ranks : {model.context().parts(), model.context().pipeline}) {
    if (ranks != nullptr) attempt([&] { ranks->agree(tell, name); });
  }
  tell();
}

const SafetensorsEntry& stored_tensor(const SafetensorsFile& file, const std::string& name, const WeightsFormat& format) {
  for (const std::string& spelling : spellings(name, format)) {
    if (const SafetensorsEntry* entry = file.find(spelling)) return *entry;
  }
  refuse(file.path().string(), lacks_a_tensor, {name}, fits_hint);
}

void require_fits(const SafetensorsFile& file, const SafetensorsEntry& entry, const Shape& shape) {
  if (entry.shape == shape && is_read(entry.dtype)) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = "a tensor of the file does not fit the model",
               .name = entry.name,
               .path = file.path().string(),
               .wanted = fmt::format("{} {}", is_read(entry.dtype) ? name_of(entry.dtype) : "float32, bfloat16 or float16",
                                     shape.str()),
               .had = fmt::format("{} {}", name_of(entry.dtype), entry.shape.str()),
               .hint = "give the model the sizes of the file; other dtypes must be converted first"});
}

bool repeats_differ(const Location& path, const WeightsFormat& format) {
  return has_weights(path) && find_differing(WeightFiles(path), format) != nullptr;
}

namespace {

template <typename T>
LoadedWeights read_weights(const std::vector<PrefixedModel>& models, const Location& path, const WeightsFormat& format,
                           const LoadOptions& options) {
  require(!models.empty(), "load_weights() got no model");
  std::optional<WeightFiles> files;
  std::vector<std::vector<Part>> parts;
  Found found;
  const Model& first = models.front().model;
  const auto look = [&] {
    files.emplace(path);
    for (const PrefixedModel& model : models) parts.push_back(parts_of(*files, model, format, options, found));
  };
  agree(first, look, "look for weights");
  found = of_all_stages(first.context().pipeline, found);
  LoadedWeights loaded{.missing = found.missing, .unexpected = unexpected(*files, found, format)};
  const auto check = [&] {  // alike on all ranks, unless their files differ
    if (!loaded.missing.empty() && !options.allow_missing) refuse(path, lacks_a_tensor, loaded.missing, fits_hint);
    // A parameter of which only some rows are loaded would look complete.
    if (!found.torn.empty()) refuse(path, lacks_a_tensor, found.torn, fits_hint);
    if (!loaded.unexpected.empty() && !options.allow_missing) {
      refuse(path, "the file holds a tensor that the model lacks", loaded.unexpected, "give the model the layers of the file");
    }
    if (const RepeatedTensor* const differs = find_differing(*files, format)) {
      refuse(path,
             fmt::format("the model has one tensor for {} and {}, but the file has two with different values", differs->of,
                         differs->name),
             {differs->name},
             "make the model with the options read from the folder, if this kind of model can have both tensors");
    }
    if (!loaded.missing.empty() && found.present.empty()) {
      refuse(path, "the file holds no tensor of the model", loaded.missing, fits_hint);
    }
  };
  agree(first, check, "check weights");
  const auto read = [&] {  // nothing is changed before all is checked
    for (std::size_t index = 0; index < models.size(); ++index) {
      Model& model = models[index].model;
      if (!format.adapter && model.context().lora) make_adapters<T>(model);
      fill<T>(model.store(), parts[index], format);
    }
  };
  agree(first, read, "read weights");
  return loaded;
}

}  // namespace

LoadedWeights load_weights(const std::vector<PrefixedModel>& models, const Location& path, const WeightsFormat& format,
                           const LoadOptions& options) {
  const bool in_double = !models.empty() && models.front().model.store().dtype() == DType::float64;
  return in_double ? read_weights<double>(models, path, format, options) : read_weights<float>(models, path, format, options);
}

template <typename T>
void load_weights(const std::vector<PrefixedModel>& models, const Location& path) {
  read_weights<T>(models, path, WeightsFormat{}, {});
}

template <typename T>
void load_weights(Model& model, const Location& path) {
  load_weights<T>({{.prefix = "", .model = model}}, path);
}

template void load_weights<float>(const std::vector<PrefixedModel>&, const Location&);
template void load_weights<float>(Model&, const Location&);
template void load_weights<double>(const std::vector<PrefixedModel>&, const Location&);
template void load_weights<double>(Model&, const Location&);

}  // namespace trireme::nn
