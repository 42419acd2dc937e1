#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// What protobuf calls a message, as bytes: its fields in any order, each with its number and the kind of its value before it.
// Written here, since a library of protobuf in a process clashes with the one within sentencepiece's.
namespace trireme::onnx {

class Message {
 public:
  void add(int field, std::int64_t number);
  void add(int field, float number);
  void add(int field, std::string_view bytes);  // also text
  void add(int field, const Message& message) { add(field, std::string_view(message.bytes_)); }

  // What stands before a value of so many bytes that is written elsewhere.
  void begin(int field, std::int64_t bytes);

  const std::string& bytes() const { return bytes_; }
  std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }

 private:
  void add_varint(std::uint64_t number);
  void add_tag(int field, unsigned kind);

  std::string bytes_;
};

}  // namespace trireme::onnx
