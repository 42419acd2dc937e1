#include "onnx/message.hpp"

#include <bit>

namespace trireme::onnx {
namespace {

constexpr unsigned varint_kind = 0, sized_kind = 2, four_bytes_kind = 5;

}  // namespace

void Message::add_varint(std::uint64_t number) {
  for (; number >= 128; number >>= 7) bytes_.push_back(static_cast<char>((number & 127) | 128));
  bytes_.push_back(static_cast<char>(number));
}

void Message::add_tag(int field, unsigned kind) { add_varint(static_cast<std::uint64_t>(field) << 3 | kind); }

void Message::add(int field, std::int64_t number) {
  add_tag(field, varint_kind);
  add_varint(static_cast<std::uint64_t>(number));
}

void Message::add(int field, float number) {
  add_tag(field, four_bytes_kind);
  auto bits = std::bit_cast<std::uint32_t>(number);
  for (int i = 0; i < 4; ++i, bits >>= 8) bytes_.push_back(static_cast<char>(bits & 255));
}

void Message::add(int field, std::string_view bytes) {
  begin(field, static_cast<std::int64_t>(bytes.size()));
  bytes_ += bytes;
}

void Message::begin(int field, std::int64_t bytes) {
  add_tag(field, sized_kind);
  add_varint(static_cast<std::uint64_t>(bytes));
}

}  // namespace trireme::onnx
