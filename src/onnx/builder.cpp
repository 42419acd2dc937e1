#include "onnx/builder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::onnx::detail {
namespace {

Dims dims_of(const Shape& first, const Shape& second) {
  Dims dims;
  for (int i = 0; i < first.size(); ++i) dims.emplace_back(first[i], second[i]);
  return dims;
}

Type type_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
    case DType::bfloat16:
    case DType::float16: return Type::float32;
    case DType::boolean: return Type::boolean;
    default: return Type::int64;
  }
}

// The elements of a constant in the graph's type: int32 becomes int64.
std::vector<std::byte> as_type(const TracedValue& value) {
  if (value.dtype != DType::int32) return value.bytes;
  std::vector<std::int32_t> narrow(value.bytes.size() / sizeof(std::int32_t));
  std::memcpy(narrow.data(), value.bytes.data(), value.bytes.size());
  const std::vector<std::int64_t> wide(narrow.begin(), narrow.end());
  const auto bytes = std::as_bytes(std::span(wide));
  return {bytes.begin(), bytes.end()};
}

// Whether all elements equal the first one.
bool is_uniform(const std::vector<std::byte>& bytes, std::size_t element) {
  return bytes.size() >= element &&
         std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(element), bytes.end(), bytes.begin());
}

const Shape& shape_of(const Trace& trace, const TracedInput& input) {
  return trace.values[static_cast<std::size_t>(input.value)].shape;
}

}  // namespace

std::string key_of(const Dims& dims) {
  std::string key;
  for (const Dim& dim : dims) key += fmt::format("{}|{},", dim.first, dim.second);
  return key;
}

Builder::Builder(Model& model, const Trace& first, const Trace& second) : model_(model), first_(first), second_(second) {}

void Builder::require_same_passes() const {
  const auto same = [&](const TracedOperation& a, const TracedOperation& b) {
    const auto same_use = [](const Use& x, const Use& y) { return x.value == y.value && x.shape.size() == y.shape.size(); };
    return a.name == b.name && a.results == b.results &&
           std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), b.operands.end(), same_use);
  };
  const auto [a, b] = std::mismatch(first_.operations.begin(), first_.operations.end(), second_.operations.begin(),
                                    second_.operations.end(), same);
  const bool have_both = a != first_.operations.end() && b != second_.operations.end();
  require(!have_both || a->name != b->name,
          "an ONNX graph has the same operations for all sizes and elements, but the operation {} of this model, {}, has other "
          "operands or results in the second pass than in the first: a branch of the program, or a tensor that it changed",
          a - first_.operations.begin(), have_both ? a->name : "");
  require(a == first_.operations.end() && b == second_.operations.end(),
          "an ONNX graph has the same operations for all sizes, but this model's differ between {} and {}: the operation {} is "
          "{} in one and {} in the other",
          fmt::join(first_.dynamic, ", "), fmt::join(second_.dynamic, ", "), a - first_.operations.begin(),
          a == first_.operations.end() ? "missing" : a->name, b == second_.operations.end() ? "missing" : b->name);
  const auto same_port = [](const auto& x, const auto& y) { return x.name == y.name; };
  const auto same_rank = [](const TracedOutput& x, const TracedOutput& y) { return x.use.shape.size() == y.use.shape.size(); };
  const auto same_shape = [&](const TracedInput& x, const TracedInput& y) {
    return shape_of(first_, x).size() == shape_of(second_, y).size();
  };
  const auto &in = first_.inputs, &in_second = second_.inputs;
  const auto &out = first_.outputs, &out_second = second_.outputs;
  require(std::equal(in.begin(), in.end(), in_second.begin(), in_second.end(), same_port) &&
              std::equal(in.begin(), in.end(), in_second.begin(), in_second.end(), same_shape) &&
              std::equal(out.begin(), out.end(), out_second.begin(), out_second.end(), same_port) &&
              std::equal(out.begin(), out.end(), out_second.begin(), out_second.end(), same_rank),
          "the export's function made other inputs or outputs in its second call than in its first");
  require(!first_.outputs.empty(), "the export's function named no output: give what the model returns to Example::output()");
}

Graph Builder::build() {
  require_same_passes();
  Emitters pointwise;
  add_pointwise(pointwise);
  Emitters emitters = pointwise;
  for (const auto add : {add_products, add_norms, add_attention, add_arrays, add_images, add_experts, add_recurrent})
    add(emitters);
  for (const TracedInput& input : first_.inputs) used_[input.name] = 1;
  for (const TracedOutput& output : first_.outputs) used_[output.name] = 1;
  for (std::size_t i = 0; i < first_.inputs.size(); ++i) add_input(i);
  for (at_ = 0; at_ < first_.operations.size(); ++at_) {
    require_no_expert_rows(pointwise);
    const auto emit = emitters.find(operation().name);
    if (emit != emitters.end()) {
      emit->second(*this);
    } else if (operation().is_view && operation_of_second().is_view) {  // reshape, flatten, squeeze, ...
      set_result(reshape(operand(0), dims(0), result_dims()));
    } else {
      refuse("has no form here");
    }
  }
  for (std::size_t i = 0; i < first_.outputs.size(); ++i) add_output(i);
  remove_unused();
  for (const Port& input : graph_.inputs) require_used(input.name);
  return std::move(graph_);
}

// Rows of experts have other dims in the graph than in the trace: only operations that work with both may read them.
void Builder::require_no_expert_rows(const Emitters& pointwise) {
  const std::string& name = operation().name;
  const std::vector<Use>& operands = operation().operands;
  const auto is_of_experts = [&](const Use& use) { return use.value >= 0 && expert_rows_.contains(use.value); };
  const bool takes_rows = name == "expert_linear" || name == "combine_expert_rows";
  const bool gives_rows = name == "take_expert_rows" || name == "expert_linear";
  const bool reads_rows = std::ranges::any_of(operands, is_of_experts);
  if (takes_rows && (!is_of_experts(operands.at(0)) || std::ranges::count_if(operands, is_of_experts) > 1)) {
    refuse("reads other rows than those of take_expert_rows");
  }
  if (reads_rows && !takes_rows) {
    const auto fits = [&](const Use& use) {  // one row for all, or a number
      return use.value < 0 || is_of_experts(use) || use.shape.size() < 2 || (use.shape.size() == 2 && use.shape[0] == 1);
    };
    const bool is_elementwise = pointwise.contains(name) && std::ranges::all_of(operands, fits);
    if (!is_elementwise) refuse("mixes rows of experts with other tensors; in the file these rows have another layout");
  }
  if (gives_rows || (reads_rows && !takes_rows)) {
    expert_rows_.insert(operation().results.begin(), operation().results.end());
  }
}

std::string Builder::choices_of(std::size_t operand, const Dims& dims) {
  std::set<int> sources{operation().operands.at(operand).value};
  for (std::size_t at = at_; at-- > 0;) {
    const TracedOperation &first = first_.operations[at], &second = second_.operations[at];
    const auto is_source = [&](int value) { return value >= 0 && sources.contains(value); };
    if (std::ranges::none_of(first.results, is_source)) continue;
    if (first.name == "topk" || first.name == "sort") {
      const Shape& chosen = first_.values[static_cast<std::size_t>(first.results[1])].shape;
      const Shape& chosen_second = second_.values[static_cast<std::size_t>(second.results[1])].shape;
      if (dims_of(chosen, chosen_second) == dims) return name_of_value(first.results[1]);
    }
    for (const Use& use : first.operands) sources.insert(use.value);
  }
  return {};
}

void Builder::add_output(std::size_t number) {
  const TracedOutput &first = first_.outputs[number], &second = second_.outputs[number];
  if (expert_rows_.contains(first.use.value)) refuse("has rows of experts; in the file these have another layout");
  Port port{.name = first.name, .type = type_of(first_.values[static_cast<std::size_t>(first.use.value)].dtype)};
  for (const Dim& dim : dims_of(first.use.shape, second.use.shape)) {
    port.dims.push_back(extent_of_port(port.name, port.dims.size(), dim));
  }
  graph_.nodes.push_back({.op = "Identity",
                          .name = fresh("Identity"),
                          .inputs = {use(first.use, second.use)},
                          .outputs = {first.name},
                          .attributes = {}});
  graph_.outputs.push_back(std::move(port));
}

// A constant extent, the name of a dynamic extent, or a new name for an extent that is computed from others.
std::variant<std::int64_t, std::string> Builder::extent_of_port(const std::string& port, std::size_t place,
                                                                const Dim& dim) const {
  if (dim.is_constant()) return dim.first;
  for (std::size_t k = 0; k < first_.dynamic.size(); ++k) {
    if (dim == Dim(first_.dynamic[k].second, second_.dynamic[k].second)) return first_.dynamic[k].first;
  }
  return fmt::format("{}_{}", port, place);
}

void Builder::remove_unused() {
  std::set<std::string> used;
  for (const Port& output : graph_.outputs) used.insert(output.name);
  std::vector<Node> kept;
  for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {  // users come after what they use
    const auto is_used = [&](const std::string& name) { return used.contains(name); };
    if (std::none_of(node->outputs.begin(), node->outputs.end(), is_used)) continue;
    used.insert(node->inputs.begin(), node->inputs.end());
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  graph_.nodes = std::move(kept);
  std::erase_if(graph_.initializers, [&](const Initializer& initializer) { return !used.contains(initializer.name); });
}

void Builder::require_used(const std::string& input) const {
  const auto reads = [&](const Node& node) { return std::ranges::count(node.inputs, input) > 0; };
  require(std::ranges::any_of(graph_.nodes, reads),
          "no output depends on the input {}: leave it out, or, if the program reads its elements itself, which a graph can't "
          "do, compute with Variables",
          input);
}

void Builder::add_input(std::size_t number) {
  const TracedInput& input = first_.inputs[number];
  const auto value = static_cast<std::size_t>(input.value);
  Dims dims = dims_of(first_.values[value].shape, second_.values[value].shape);
  if (input.form == InputForm::images) dims = {dims.at(0), dims.at(3), dims.at(1), dims.at(2)};
  Port port{.name = input.name, .type = type_of(first_.values[value].dtype), .dims = {}};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    port.dims.push_back(extent_of_port(input.name, i, dims[i]));
    if (dims[i].is_constant()) continue;
    const auto place = static_cast<std::int64_t>(i);
    once("extent " + key_of({dims[i]}), [&] { return node("Shape", {input.name}, {{"start", place}, {"end", place + 1}}); });
  }
  graph_.inputs.push_back(std::move(port));
  std::string& name = names_[input.value];
  name = input.name;
  if (input.form == InputForm::images) name = transpose(name, {0, 2, 3, 1});
  if (input.form == InputForm::padding_mask) {
    name = cast(node("Equal", {name, numbers_of({0}, true)}), Type::int64);  // as the program sees it
  }
}

bool Builder::has(std::size_t operand) const {
  return operand < operation().operands.size() && operation().operands[operand].value >= 0;
}

bool Builder::is_made_by_program(std::size_t operand) const {
  const auto value = static_cast<std::size_t>(operation().operands.at(operand).value);
  return first_.values[value].kind == TracedValue::Kind::constant;
}

std::string Builder::operand(std::size_t number) {
  require(number < operation().operands.size(), "{} has no operand {}", operation().name, number);
  return use(operation().operands[number], operation_of_second().operands[number]);
}

std::string Builder::use(const Use& first, const Use& second) {
  std::string name = name_of_value(first.value);
  const auto value = static_cast<std::size_t>(first.value);
  const Dims from = dims_of(first_.values[value].shape, second_.values[value].shape);
  const Dims to = dims_of(first.shape, second.shape);
  if (from == to) return name;
  return once("shape of " + name + " " + key_of(to), [&] { return reshape(name, from, to); });
}

Dims Builder::dims(std::size_t operand) const {
  return dims_of(operation().operands.at(operand).shape, operation_of_second().operands.at(operand).shape);
}

Dims Builder::result_dims(std::size_t result) const {
  const auto value = static_cast<std::size_t>(operation().results.at(result));
  return dims_of(first_.values[value].shape, second_.values[value].shape);
}

void Builder::set_result(const std::string& name, std::size_t result) { names_[operation().results.at(result)] = name; }

void Builder::refuse(std::string_view why) const {
  if (at_ == first_.operations.size()) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("an output {}: the model can't be exported to ONNX", why)});
  }
  const std::string& parameter = operation().layer;
  const std::string place = parameter.empty()
                                ? "before any parameter is used"
                                : fmt::format("in or after the layer {}", parameter.substr(0, parameter.rfind('.')));
  throw Error(
      {.code = ErrorCode::invalid_argument,
       .message = fmt::format("the operation {}, {}, {}: the model can't be exported to ONNX", operation().name, place, why)});
}

std::string Builder::name_of_value(int value) {
  const auto found = names_.find(value);
  if (found != names_.end()) return found->second;
  const TracedValue& of = first_.values[static_cast<std::size_t>(value)];
  std::string name = of.kind == TracedValue::Kind::constant ? constant(value) : stored(of);
  names_[value] = name;
  return name;
}

std::string Builder::stored(const TracedValue& value) {
  FlatStore* store = &model_.store();
  Initializer weight;
  const int index = value.index;
  if (value.kind == TracedValue::Kind::parameter) {
    weight.name = store->parameter(index).name;
    weight.read = [store, index] { return store->read_values<float>(index); };
  } else {
    weight.name = store->buffers().info(index).name;
    weight.read = [store, index] { return store->buffers().read_values<float>(index); };
  }
  weight.name = fresh(weight.name);
  weight.dims.assign(value.shape.dims().begin(), value.shape.dims().end());
  weight.num_bytes = value.shape.numel() * std::int64_t{sizeof(float)};
  graph_.initializers.push_back(std::move(weight));
  return graph_.initializers.back().name;
}

// Adds a tensor that the program made outside of operations.
std::string Builder::constant(int value) {
  const TracedValue& first = first_.values[static_cast<std::size_t>(value)];
  const TracedValue& second = second_.values[static_cast<std::size_t>(value)];
  const bool is_known = first.dtype == DType::float32 || first.dtype == DType::int32 || first.dtype == DType::int64 ||
                        first.dtype == DType::boolean;
  if (!is_known)
    refuse(fmt::format("reads a tensor of {}, which is no input, parameter or result of an operation", name_of(first.dtype)));
  const auto bytes = as_type(first);
  const Dims dims = dims_of(first.shape, second.shape);
  if (first.shape == second.shape && first.bytes == second.bytes) {
    return add_constant(type_of(first.dtype), {first.shape.dims().begin(), first.shape.dims().end()}, bytes);
  }
  const std::size_t element = size_of(first.dtype);
  const bool repeats =
      is_uniform(first.bytes, element) && is_uniform(second.bytes, element) &&
      std::equal(first.bytes.begin(), first.bytes.begin() + static_cast<std::ptrdiff_t>(element), second.bytes.begin());
  if (!repeats) {
    refuse(
        fmt::format("reads a tensor of shape {} that the program computed from its inputs, or from their sizes, outside of "
                    "operations on Variables, which a graph can't do; compute it with Variables, or make it an input",
                    first.shape));
  }
  if (first.dtype == DType::boolean) {
    refuse(
        "reads a mask that the program computed, which is the same for all elements of the example but may differ for other "
        "inputs: make it an input, or compute it with Variables");
  }
  const std::size_t in_graph = bytes.size() / static_cast<std::size_t>(first.shape.numel());
  const std::string one =
      add_constant(type_of(first.dtype), {}, {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(in_graph)});
  return node("Expand", {one, extents(dims)});
}

std::string Builder::fresh(std::string_view stem) {
  std::string name(stem);
  int& times = used_[std::string(stem)];
  while (times > 0 && used_.contains(name = fmt::format("{}_{}", stem, times))) ++times;
  ++times;
  used_.emplace(name, 1);
  return name;
}

std::vector<std::string> Builder::nodes(std::string_view op, const std::vector<std::string>& inputs, std::size_t outputs,
                                        std::vector<Attribute> attributes) {
  Node added{.op = std::string(op), .name = fresh(op), .inputs = inputs, .outputs = {}, .attributes = std::move(attributes)};
  for (std::size_t i = 0; i < outputs; ++i) added.outputs.push_back(fresh(fmt::format("{}:{}", added.name, i)));
  graph_.nodes.push_back(added);
  return added.outputs;
}

std::string Builder::node(std::string_view op, const std::vector<std::string>& inputs, std::vector<Attribute> attributes) {
  return nodes(op, inputs, 1, std::move(attributes))[0];
}

}  // namespace trireme::onnx::detail
