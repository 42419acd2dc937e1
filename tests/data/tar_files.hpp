#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

// Archives of tar, right ones and others, header by header.
namespace trireme::tests {

struct TarHeader {
  std::string name = {};
  std::uint64_t size = 0;
  char type = '0';
  std::string magic = std::string(
      "ustar\0"
      "00",
      8);
  std::string prefix = {};
  std::string size_field = {};  // in place of the size in octal digits
  int checksum_off_by = 0;

  std::string bytes() const {
    std::string block(512, '\0');
    const auto put = [&](std::size_t at, std::string_view text) { block.replace(at, text.size(), text); };
    put(0, std::string_view(name).substr(0, 100));
    put(100, "0000644");
    put(124, size_field.empty() ? fmt::format("{:011o}", size) : size_field);
    put(136, "00000000000");
    put(148, "        ");
    block[156] = type;
    put(257, magic);
    put(345, prefix);
    int sum = checksum_off_by;
    for (const char byte : block) sum += static_cast<unsigned char>(byte);
    put(148, fmt::format("{:06o}", sum));
    block[154] = '\0';
    return block;
  }
};

inline std::string padded(std::string content) {
  content.resize((content.size() + 511) / 512 * 512, '\0');
  return content;
}

inline std::string tar_member(TarHeader header, const std::string& content = {}) {
  if (header.size == 0) header.size = content.size();
  return header.bytes() + padded(content);
}

inline std::string tar_file(const std::string& name, const std::string& content) { return tar_member({.name = name}, content); }

// "27 path=...\n": the length counts itself.
inline std::string pax_record(std::string_view key, std::string_view value) {
  std::size_t length = key.size() + value.size() + 3;
  while (std::to_string(length).size() + key.size() + value.size() + 3 != length) ++length;
  return fmt::format("{} {}={}\n", length, key, value);
}

inline const std::string tar_mark(1024, '\0');

inline void write_text(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace trireme::tests
