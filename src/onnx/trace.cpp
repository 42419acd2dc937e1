#include "onnx/trace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "trireme/core/error.hpp"
#include "trireme/files/crc32c.hpp"

namespace trireme::onnx {

std::int64_t Example::dynamic(std::string_view name, std::int64_t multiple_of) { return tracer_->dynamic(name, multiple_of); }
// Elements differ in the second pass, which reveals tensors that the program computed from them outside of operations.
float Example::real_element(std::int64_t index) const {
  return tracer_->pass() == 0 ? 0.0F : 8 * std::sin(static_cast<float>(index % 1000 + 1));
}
std::int32_t Example::whole_element(std::int64_t index, std::int32_t below) const {
  return tracer_->pass() == 0 ? 0 : static_cast<std::int32_t>((index + 1) % std::max(below, 1));
}
void Example::add_input(std::string_view name, const Operand& tensor, detail::InputForm form) {
  tracer_->add_input(name, tensor, form);
}
void Example::add_output(std::string_view name, const Operand& tensor) { tracer_->add_output(name, tensor); }

namespace detail {
namespace {

// The k-th dynamic extent in both passes. They are small, since some models are short. Products of different extents have
// different ratios between the passes. A half, a third or a quarter of one, rounded up or down, differs between the passes, and
// so does the remainder. No pair equals another pair with up to 3 added to or subtracted from both.
constexpr std::array<std::array<std::int64_t, 2>, 6> extents{{{3, 8}, {3, 10}, {3, 14}, {4, 17}, {7, 14}, {7, 18}}};

std::span<const std::byte> elements_of(const Operand& tensor) {
  const auto* begin = static_cast<const std::byte*>(tensor.storage->data()) + tensor.offset;
  return {begin, static_cast<std::size_t>(tensor.shape.numel()) * size_of(tensor.dtype)};
}
std::vector<std::byte> bytes_of(const Operand& tensor) {
  const auto elements = elements_of(tensor);
  return {elements.begin(), elements.end()};
}

}  // namespace

std::int64_t Tracer::dynamic(std::string_view name, std::int64_t multiple_of) {
  require(!name.empty(), "dynamic(\"\"): an extent needs a name");
  require(multiple_of >= 1, "dynamic(\"{}\"): a multiple of {}, but it has to be 1 or more", name, multiple_of);
  const std::size_t place = trace_.dynamic.size();
  for (std::size_t i = 0; i < place; ++i) {
    const auto& [known, number] = trace_.dynamic[i];
    if (known != name) continue;
    const std::int64_t before = number / extents[i][static_cast<std::size_t>(pass_)];
    require(before == multiple_of, "dynamic(\"{}\"): a multiple of {}, but it was one of {} before", name, multiple_of, before);
    return number;
  }
  require(place < extents.size(), "dynamic(\"{}\"): an export has at most {} dynamic extents", name, extents.size());
  trace_.dynamic.emplace_back(name, multiple_of * extents[place][static_cast<std::size_t>(pass_)]);
  return trace_.dynamic.back().second;
}

int Tracer::add_value(TracedValue value, const Operand& tensor) {
  const int number = static_cast<int>(trace_.values.size());
  value.shape = tensor.shape;
  value.dtype = tensor.dtype;
  value.version = tensor.storage->version();
  trace_.values.push_back(std::move(value));
  known_.insert({tensor.storage.get(), {tensor.storage, tensor.offset, tensor.shape, number}});
  return number;
}

void Tracer::add_input(std::string_view name, const Operand& tensor, InputForm form) {
  require(!name.empty(), "an input has no name");
  for (const TracedInput& input : trace_.inputs) require(input.name != name, "two inputs have the name {}", name);
  require(tensor.shape.numel() > 0, "the input {} has the shape {}: an example needs elements", name, tensor.shape);
  require(form != InputForm::images || tensor.shape.size() == 4,
          "images(\"{}\"): the shape {} is not [batch, height, width, channels]", name, tensor.shape);
  const int number = static_cast<int>(trace_.inputs.size());
  const int value = add_value({.kind = TracedValue::Kind::input, .index = number, .bytes = bytes_of(tensor)}, tensor);
  trace_.inputs.push_back({.name = std::string(name), .value = value, .form = form});
}

void Tracer::add_output(std::string_view name, const Operand& tensor) {
  require(!name.empty(), "an output has no name");
  for (const TracedInput& input : trace_.inputs) {
    require(input.name != name, "an input and an output have the name {}, but names in a graph must be unique", name);
  }
  for (const TracedOutput& output : trace_.outputs) require(output.name != name, "two outputs have the name {}", name);
  require(tensor.storage != nullptr, "the output {} is an undefined tensor", name);
  require(tensor.dtype != DType::float64, "the output {} is of float64, which an export has no form for", name);
  trace_.outputs.push_back({.name = std::string(name), .use = use_of(tensor)});
}

int Tracer::find_known(const Operand& tensor) const {
  int found = -1;
  bool is_exact = false;
  const auto [begin, end] = known_.equal_range(tensor.storage.get());
  for (auto place = begin; place != end; ++place) {  // the newest counts
    const Known& known = place->second;
    if (known.offset != tensor.offset || known.shape.numel() != tensor.shape.numel()) continue;
    const bool fits = known.shape == tensor.shape;
    if (is_exact && !fits) continue;
    found = known.value;
    is_exact = fits;
  }
  return found;
}

// Finds a parameter, in the values or in the compute copy, or a buffer; -1: none.
int Tracer::find_stored(const Operand& tensor) {
  FlatStore& store = model_.store();
  const auto value_of = [&](bool is_buffer, int index, const Shape& shape) {
    const auto [place, is_new] = stored_.try_emplace({is_buffer, index}, static_cast<int>(trace_.values.size()));
    if (is_new) {
      const auto kind = is_buffer ? TracedValue::Kind::buffer : TracedValue::Kind::parameter;
      trace_.values.push_back({.kind = kind, .index = index, .shape = shape});
    }
    return place->second;
  };
  const std::byte* const place = static_cast<const std::byte*>(tensor.storage->data()) + tensor.offset;
  const auto lies_at = [&](const device::Storage& plane, std::int64_t offset, std::int64_t numel) {
    const std::byte* const begin = static_cast<const std::byte*>(plane.data());
    return place == begin + static_cast<std::size_t>(offset) * size_of(tensor.dtype) && numel == tensor.shape.numel();
  };
  for (const int number : {FlatStore::values_number, store.compute_number()}) {
    if (tensor.dtype != (number == FlatStore::values_number ? store.dtype() : store.compute_dtype())) continue;
    for (int index = 0; index < store.num_parameters(); ++index) {
      const ParameterInfo& info = store.parameter(index);
      if (!lies_at(*store.plane(number), info.offset, info.numel)) continue;
      layer_ = info.name;
      return value_of(false, index, info.shape);
    }
  }
  if (store.buffers().size() == 0 || tensor.dtype != store.dtype()) return -1;
  for (int index = 0; index < store.buffers().size(); ++index) {
    const BufferInfo& info = store.buffers().info(index);
    if (lies_at(*store.buffers().plane(), info.offset, info.shape.numel())) return value_of(true, index, info.shape);
  }
  return -1;
}

bool Tracer::is_overwritten(int value, const Operand& tensor) const {
  const TracedValue& known = trace_.values[static_cast<std::size_t>(value)];
  const bool is_stored = known.kind == TracedValue::Kind::parameter || known.kind == TracedValue::Kind::buffer;
  if (!is_stored && known.version != tensor.storage->version()) return true;  // also of equal elements, as scaled zeros
  if (known.kind == TracedValue::Kind::result) return known.checksum != crc32c(elements_of(tensor));
  const bool is_kept = known.kind == TracedValue::Kind::input || known.kind == TracedValue::Kind::constant;
  return is_kept && !std::ranges::equal(known.bytes, elements_of(tensor));
}

Use Tracer::use_of(const Operand& tensor) {
  if (tensor.storage == nullptr) return {};
  int value = find_stored(tensor);
  if (value < 0) value = find_known(tensor);
  if (value < 0 || is_overwritten(value, tensor)) {
    value = add_value({.kind = TracedValue::Kind::constant, .bytes = bytes_of(tensor)}, tensor);
  }
  return {.value = value, .shape = tensor.shape};
}

// Operands are looked up before the work, which might reuse their memory.
void Tracer::before(Pass, const OperationView& view) {
  TracedOperation operation{.name = std::string(view.name), .attributes = view.attributes()};
  for (const Operand& operand : view.operands) operation.operands.push_back(use_of(operand));
  if (!view.results.empty() && !view.operands.empty()) {
    const Operand &from = view.operands[0], &to = view.results[0];
    operation.is_view = from.storage == to.storage && from.offset == to.offset && from.shape.numel() == to.shape.numel() &&
                        from.storage != nullptr;
  }
  operation.layer = layer_;
  trace_.operations.push_back(std::move(operation));
}

void Tracer::after(Pass, const OperationView& view) {
  for (const Operand& result : view.results) {
    trace_.operations.back().results.push_back(
        result.storage == nullptr ? -1 : add_value({.checksum = crc32c(elements_of(result))}, result));
  }
}

}  // namespace detail
}  // namespace trireme::onnx
