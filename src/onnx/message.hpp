#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// A protobuf message as bytes: fields in any order, each after its number and the kind of its value. It does not use the
// protobuf library, which would clash with the one inside sentencepiece.
namespace trireme::onnx {

class Message {
 public:
  void add(int field, std::int64_t number);
  void add(int field, float number);
  void add(int field, std::string_view bytes);  // also text
  void add(int field, const Message& message) { add(field, std::string_view(message.bytes_)); }

  // Adds number, kind and length of a value of this many bytes that the caller writes itself.
  void begin(int field, std::int64_t bytes);

  const std::string& bytes() const { return bytes_; }
  std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }

 private:
  void add_varint(std::uint64_t number);
  void add_tag(int field, unsigned kind);

  std::string bytes_;
};

}  // namespace trireme::onnx
