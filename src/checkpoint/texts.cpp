#include "checkpoint/texts.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace trireme::checkpoint {

std::string broadcast_text(const Group& group, std::string text, std::string_view name) {
  std::array<std::uint64_t, 1> size{text.size()};
  group.broadcast(std::span(size), 0, name).wait_on_host();
  text.resize(size[0]);
  group.broadcast(std::span(reinterpret_cast<std::uint8_t*>(text.data()), text.size()), 0, name).wait_on_host();
  return text;
}

}  // namespace trireme::checkpoint
