#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

namespace trireme::tests {

using Bytes = std::vector<std::uint8_t>;

inline void write_bytes(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

inline Bytes idx_file(std::initializer_list<std::uint8_t> dims, const Bytes& values) {
  Bytes bytes = {0, 0, 8, static_cast<std::uint8_t>(dims.size())};
  for (const std::uint8_t dim : dims) bytes.insert(bytes.end(), {0, 0, 0, dim});
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

}  // namespace trireme::tests
