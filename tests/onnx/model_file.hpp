#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Reads an ONNX file back, field by field.
namespace trireme::tests {

// The fields of a message by number: texts and messages as bytes, numbers as they are, floats as their bits.
struct OnnxMessage {
  std::map<int, std::vector<std::string>> texts;
  std::map<int, std::vector<std::int64_t>> numbers;

  explicit OnnxMessage(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::uint64_t tag = varint(bytes);
      const int field = static_cast<int>(tag >> 3);
      switch (tag & 7) {
        case 0: numbers[field].push_back(static_cast<std::int64_t>(varint(bytes))); break;
        case 2: {
          const std::uint64_t size = varint(bytes);
          texts[field].emplace_back(taken(bytes, size));
          break;
        }
        case 5: {
          std::uint32_t bits = 0;
          std::memcpy(&bits, taken(bytes, 4).data(), 4);
          numbers[field].push_back(bits);
          break;
        }
        default: throw std::runtime_error("a field of an unknown kind");
      }
    }
  }
  std::string text(int field) const { return texts.contains(field) ? texts.at(field).at(0) : std::string(); }
  std::int64_t number(int field) const { return numbers.contains(field) ? numbers.at(field).at(0) : 0; }
  std::vector<OnnxMessage> messages(int field) const {
    std::vector<OnnxMessage> all;
    if (texts.contains(field)) {
      for (const std::string& bytes : texts.at(field)) all.emplace_back(bytes);
    }
    return all;
  }
  std::vector<std::string> all_texts(int field) const {
    return texts.contains(field) ? texts.at(field) : std::vector<std::string>();
  }
  std::vector<std::int64_t> all_numbers(int field) const {
    return numbers.contains(field) ? numbers.at(field) : std::vector<std::int64_t>();
  }

 private:
  static std::string_view taken(std::string_view& bytes, std::uint64_t size) {
    if (size > bytes.size()) throw std::runtime_error("a message ends within a field");
    const std::string_view part = bytes.substr(0, size);
    bytes.remove_prefix(size);
    return part;
  }
  static std::uint64_t varint(std::string_view& bytes) {
    std::uint64_t number = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(taken(bytes, 1)[0]);
      number |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) return number;
    }
  }
};

struct OnnxTensor {
  std::string name;
  std::int64_t type = 0;
  std::vector<std::int64_t> dims;
  std::string bytes;
  bool is_external = false;
};
struct OnnxNode {
  std::string op;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, std::string> texts;  // attributes
};
struct OnnxPort {
  std::string name;
  std::int64_t type = 0;
  std::vector<std::string> dims;  // numbers as text
};

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.good()) throw std::runtime_error(path + " can't be read");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct OnnxFile {
  std::int64_t ir_version = 0;
  std::int64_t opset = 0;
  std::map<std::string, std::string> metadata;
  std::vector<OnnxPort> inputs, outputs;
  std::vector<OnnxNode> nodes;
  std::map<std::string, OnnxTensor> tensors;

  explicit OnnxFile(const std::string& path) {
    const OnnxMessage model(content_of(path));
    ir_version = model.number(1);
    opset = model.messages(8).at(0).number(2);
    for (const OnnxMessage& entry : model.messages(14)) metadata[entry.text(1)] = entry.text(2);
    const OnnxMessage graph(model.text(7));
    for (const OnnxMessage& node : graph.messages(1)) {
      nodes.push_back({.op = node.text(4), .inputs = node.all_texts(1), .outputs = node.all_texts(2), .texts = {}});
      for (const OnnxMessage& attribute : node.messages(5)) nodes.back().texts[attribute.text(1)] = attribute.text(4);
    }
    for (const OnnxMessage& tensor : graph.messages(5)) add(tensor, path);
    for (const OnnxMessage& port : graph.messages(11)) inputs.push_back(port_of(port));
    for (const OnnxMessage& port : graph.messages(12)) outputs.push_back(port_of(port));
  }

  std::vector<std::string> ops() const {
    std::vector<std::string> all;
    for (const OnnxNode& node : nodes) all.push_back(node.op);
    return all;
  }
  int count(std::string_view op) const {
    int found = 0;
    for (const OnnxNode& node : nodes) found += node.op == op ? 1 : 0;
    return found;
  }
  std::vector<OnnxNode> users_of(const std::string& value) const {
    std::vector<OnnxNode> users;
    for (const OnnxNode& node : nodes) {
      for (const std::string& input : node.inputs) {
        if (input == value) users.push_back(node);
      }
    }
    return users;
  }

 private:
  void add(const OnnxMessage& from, const std::string& path) {
    OnnxTensor tensor{.name = from.text(8), .type = from.number(2), .dims = from.all_numbers(1), .bytes = from.text(9)};
    tensor.is_external = from.number(14) == 1;
    if (tensor.is_external) {
      std::map<std::string, std::string> entries;
      for (const OnnxMessage& entry : from.messages(13)) entries[entry.text(1)] = entry.text(2);
      const std::string folder = path.substr(0, path.rfind('/') + 1);
      tensor.bytes = content_of(folder + entries.at("location"))
                         .substr(std::stoul(entries.at("offset")), std::stoul(entries.at("length")));
    }
    if (!tensors.emplace(tensor.name, tensor).second) throw std::runtime_error("two tensors are named " + tensor.name);
  }
  static OnnxPort port_of(const OnnxMessage& port) {
    const OnnxMessage tensor(OnnxMessage(port.text(2)).text(1));
    OnnxPort read{.name = port.text(1), .type = tensor.number(1), .dims = {}};
    for (const OnnxMessage& dim : OnnxMessage(tensor.text(2)).messages(1)) {
      read.dims.push_back(dim.texts.contains(2) ? dim.text(2) : std::to_string(dim.number(1)));
    }
    return read;
  }
};

}  // namespace trireme::tests
