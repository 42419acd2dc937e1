#include <algorithm>
#include <cstdint>
#include <cstring>

#include "comm/backend.hpp"

namespace trireme::comm {
namespace {

constexpr std::size_t block = 16;  // of part_of: equal blocks of a multiple of it are the parts

void all_gather(Backend& backend, void* data, std::size_t count, DType dtype, std::string_view name) {
  start(backend, {.kind = Kind::all_gather, .dtype = dtype, .data = data, .count = count, .name = name}).wait_on_host();
}

}  // namespace

std::vector<std::string> gather_texts(Backend& backend, std::string_view text, std::string_view name) {
  const auto ranks = static_cast<std::size_t>(backend.members().size());
  const auto me = static_cast<std::size_t>(backend.members().me);

  std::vector<std::uint64_t> sizes(ranks * block);
  sizes[me * block] = text.size();
  all_gather(backend, sizes.data(), sizes.size(), DType::uint64, name);

  std::size_t longest = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) longest = std::max<std::size_t>(longest, sizes[rank * block]);
  const std::size_t stride = (longest + block - 1) / block * block;
  std::string all(ranks * stride, '\0');
  std::copy(text.begin(), text.end(), all.begin() + static_cast<std::ptrdiff_t>(me * stride));
  all_gather(backend, all.data(), all.size(), DType::uint8, name);

  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < ranks; ++rank) texts.push_back(all.substr(rank * stride, sizes[rank * block]));
  return texts;
}

}  // namespace trireme::comm
