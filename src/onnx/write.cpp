#include <limits>
#include <optional>
#include <span>

#include "onnx/graph.hpp"
#include "onnx/message.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/version.hpp"
#include "trireme/files/file_system.hpp"

// The messages of ONNX (the public onnx.proto), as far as an export needs them. Weights are in memory one at a time.
namespace trireme::onnx {
namespace {

constexpr std::int64_t ir_version = 8, opset = 17;
constexpr std::int64_t least_external_bytes = 1024;  // smaller tensors stay in the graph
constexpr std::int64_t data_alignment = 64;

// Numbers of fields.
namespace entry_field {
constexpr int key = 1, value = 2;
}
namespace tensor_field {
constexpr int dims = 1, data_type = 2, name = 8, raw_data = 9, external_data = 13, data_location = 14;
}
namespace attribute_field {
constexpr int name = 1, real = 2, whole = 3, text = 4, numbers = 8, type = 20;
}
namespace node_field {
constexpr int input = 1, output = 2, name = 3, op_type = 4, attribute = 5;
}
namespace value_field {
constexpr int name = 1, type = 2;
}
namespace type_field {
constexpr int tensor = 1, element = 1, shape = 2, dim = 1, dim_value = 1, dim_name = 2;
}
namespace graph_field {
constexpr int node = 1, name = 2, initializer = 5, input = 11, output = 12;
}
namespace model_field {
constexpr int ir_version = 1, producer_name = 2, producer_version = 3, graph = 7, opset_import = 8, metadata = 14;
}
namespace opset_field {
constexpr int domain = 1, version = 2;
}

enum class AttributeType : std::uint8_t { real = 1, whole = 2, text = 3, numbers = 7 };
constexpr std::int64_t external_location = 1;

Message message_of(const std::string& key, const std::string& value) {
  Message entry;
  entry.add(entry_field::key, key);
  entry.add(entry_field::value, value);
  return entry;
}

Message message_of(const Attribute& attribute) {
  Message to;
  to.add(attribute_field::name, attribute.name);
  AttributeType type = AttributeType::whole;
  if (const auto* whole = std::get_if<std::int64_t>(&attribute.value)) {
    to.add(attribute_field::whole, *whole);
  } else if (const auto* of_elements = std::get_if<Type>(&attribute.value)) {
    to.add(attribute_field::whole, static_cast<std::int64_t>(*of_elements));
  } else if (const auto* real = std::get_if<float>(&attribute.value)) {
    to.add(attribute_field::real, *real);
    type = AttributeType::real;
  } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    to.add(attribute_field::text, *text);
    type = AttributeType::text;
  } else {
    for (const std::int64_t number : std::get<std::vector<std::int64_t>>(attribute.value)) {
      to.add(attribute_field::numbers, number);
    }
    type = AttributeType::numbers;
  }
  to.add(attribute_field::type, static_cast<std::int64_t>(type));
  return to;
}

Message message_of(const Node& node) {
  Message to;
  for (const std::string& input : node.inputs) to.add(node_field::input, input);
  for (const std::string& output : node.outputs) to.add(node_field::output, output);
  to.add(node_field::name, node.name);
  to.add(node_field::op_type, node.op);
  for (const Attribute& attribute : node.attributes) to.add(node_field::attribute, message_of(attribute));
  return to;
}

Message message_of(const Port& port) {
  Message shape;
  for (const auto& dim : port.dims) {
    Message of_dim;
    if (const auto* name = std::get_if<std::string>(&dim)) {
      of_dim.add(type_field::dim_name, *name);
    } else {
      of_dim.add(type_field::dim_value, std::get<std::int64_t>(dim));
    }
    shape.add(type_field::dim, of_dim);
  }
  Message tensor, type, to;
  tensor.add(type_field::element, static_cast<std::int64_t>(port.type));
  tensor.add(type_field::shape, shape);
  type.add(type_field::tensor, tensor);
  to.add(value_field::name, port.name);
  to.add(value_field::type, type);
  return to;
}

// The fields before a tensor's elements, or in their place if they lie in the other file.
struct TensorHead {
  Message message;
  std::int64_t elements_here = 0;  // bytes of them that follow
  std::int64_t place = -1;         // in the other file

  std::int64_t size() const { return message.size() + elements_here; }
};

TensorHead head_of(const Initializer& initializer, const std::string& data_file, std::int64_t& data_end) {
  TensorHead head;
  for (const std::int64_t dim : initializer.dims) head.message.add(tensor_field::dims, dim);
  head.message.add(tensor_field::data_type, static_cast<std::int64_t>(initializer.type));
  head.message.add(tensor_field::name, initializer.name);
  if (data_file.empty() || initializer.num_bytes < least_external_bytes) {
    head.elements_here = initializer.num_bytes;
    head.message.begin(tensor_field::raw_data, head.elements_here);
    return head;
  }
  head.place = (data_end + data_alignment - 1) / data_alignment * data_alignment;
  data_end = head.place + initializer.num_bytes;
  head.message.add(tensor_field::external_data, message_of("location", data_file));
  head.message.add(tensor_field::external_data, message_of("offset", std::to_string(head.place)));
  head.message.add(tensor_field::external_data, message_of("length", std::to_string(initializer.num_bytes)));
  head.message.add(tensor_field::data_location, external_location);
  return head;
}

void write_message(FileReplacement& file, const Message& message) { file.write(std::as_bytes(std::span(message.bytes()))); }

void write_elements(FileReplacement& file, const Initializer& initializer) {
  if (!initializer.read) return file.write(initializer.bytes);
  const Tensor<float> values = initializer.read();
  file.write(std::as_bytes(values.span()));
}

void write_data(FileReplacement& file, const Graph& graph, const std::vector<TensorHead>& heads) {
  std::int64_t written = 0;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (heads[i].place < 0) continue;
    file.write(std::vector<std::byte>(static_cast<std::size_t>(heads[i].place - written)));
    write_elements(file, graph.initializers[i]);
    written = heads[i].place + graph.initializers[i].num_bytes;
  }
}

}  // namespace

void write_graph(const Graph& graph, const Location& path, const std::map<std::string, std::string>& metadata,
                 bool external_data) {
  const Location data_path = path.beside(".data");
  const std::string data_file = external_data ? data_path.name() : std::string();
  Message of_graph;
  of_graph.add(graph_field::name, "trireme");
  for (const Node& node : graph.nodes) of_graph.add(graph_field::node, message_of(node));
  for (const Port& input : graph.inputs) of_graph.add(graph_field::input, message_of(input));
  for (const Port& output : graph.outputs) of_graph.add(graph_field::output, message_of(output));
  std::vector<TensorHead> heads;
  std::vector<Message> before;  // the heads
  std::int64_t data_end = 0, size = of_graph.size();
  for (const Initializer& initializer : graph.initializers) {
    heads.push_back(head_of(initializer, data_file, data_end));
    before.emplace_back().begin(graph_field::initializer, heads.back().size());
    size += before.back().size() + heads.back().size();
  }

  Message model, operators;
  model.add(model_field::ir_version, ir_version);
  model.add(model_field::producer_name, "trireme");
  model.add(model_field::producer_version, version());
  operators.add(opset_field::domain, "");
  operators.add(opset_field::version, opset);
  model.add(model_field::opset_import, operators);
  for (const auto& [key, value] : metadata) model.add(model_field::metadata, message_of(key, value));
  model.begin(model_field::graph, size);
  require(size + model.size() <= std::numeric_limits<std::int32_t>::max(),
          "{} would have {} bytes, but an ONNX file must be smaller than 2 GiB: lower external_data_above, so that the weights "
          "go to a second file",
          path, size + model.size());

  // Both files are complete, and on disk, before either gets its name.
  std::optional<FileReplacement> data;
  if (external_data) write_data(data.emplace(data_path), graph, heads);
  FileReplacement file(path);
  write_message(file, model);
  write_message(file, of_graph);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    write_message(file, before[i]);
    write_message(file, heads[i].message);
    if (heads[i].elements_here > 0) write_elements(file, graph.initializers[i]);
  }
  if (data) data->finish();
  file.finish();
  const bool is_replaced = is_there(path);
  if (data) data->commit();
  file.commit();
  if (!data && is_replaced && !is_folder(data_path)) file_system_of(path)->remove_all(data_path);
}

}  // namespace trireme::onnx
