#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "trireme/onnx/export.hpp"
#include "trireme/tensor/tensor.hpp"

// What an ONNX file holds.
namespace trireme::onnx {

enum class Type : std::uint8_t { float32 = 1, int64 = 7, boolean = 9 };  // numbers of the format

struct Attribute {
  std::string name;
  std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, Type> value;
};

struct Node {
  std::string op;
  std::string name;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<Attribute> attributes;
};

// A constant of the graph. A weight is read by `read` when it is written; other constants have their bytes here.
struct Initializer {
  std::string name;
  Type type = Type::float32;
  std::vector<std::int64_t> dims;
  std::vector<std::byte> bytes = {};
  std::function<Tensor<float>()> read = {};
  std::int64_t num_bytes = 0;
};

struct Port {
  std::string name;
  Type type = Type::float32;
  std::vector<std::variant<std::int64_t, std::string>> dims = {};  // an extent, or the name of a dynamic one
};

struct Graph {
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Node> nodes;
  std::vector<Initializer> initializers;
};

void write_graph(const Graph& graph, const Location& path, const std::map<std::string, std::string>& metadata,
                 bool external_data);

}  // namespace trireme::onnx
