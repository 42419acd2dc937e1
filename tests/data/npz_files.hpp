#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Archives of arrays as numpy.savez writes them, and others.
namespace trireme::tests {

struct NpzArray {
  std::string name;
  std::string content;
  int method = 0;
};

inline std::string little_endian(std::uint64_t number, int bytes) {
  std::string text;
  for (int byte = 0; byte < bytes; ++byte) text += static_cast<char>(number >> (8 * byte) & 0xff);
  return text;
}

// A file of numpy.save.
inline std::string npy_file(std::string_view description, std::string_view elements) {
  std::string text(description);
  text.resize((text.size() + 11 + 63) / 64 * 64 - 11, ' ');
  text += '\n';
  return std::string("\x93NUMPY\1\0", 8) + little_endian(text.size(), 2) + text + std::string(elements);
}

// `wide`: sizes and places are where those of more than 4 GiB are.
inline std::string npz_file(const std::vector<NpzArray>& arrays, bool wide = false) {
  constexpr std::uint64_t elsewhere = 0xffffffff;
  std::string file, directory;
  for (const auto& [name, content, method] : arrays) {
    const std::string size = little_endian(content.size(), 8), path = name + ".npy";
    const std::string start = little_endian(45, 2) + little_endian(0, 2) +
                              little_endian(static_cast<std::uint64_t>(method), 2) + std::string("\0\0\x21\0", 4) +
                              little_endian(0, 4);
    const std::string extra =
        wide ? "\1" + std::string(1, '\0') + little_endian(24, 2) + size + size + little_endian(file.size(), 8) : "";
    directory += "PK\1\2" + little_endian(45, 2) + start;
    for (int number = 0; number < 2; ++number) directory += little_endian(wide ? elsewhere : content.size(), 4);
    directory += little_endian(path.size(), 2) + little_endian(extra.size(), 2) + std::string(10, '\0') +
                 little_endian(wide ? elsewhere : file.size(), 4) + path + extra;
    file += "PK\3\4" + start + std::string(8, '\xff') + little_endian(path.size(), 2) + little_endian(20, 2) + path + "\1" +
            std::string(1, '\0') + little_endian(16, 2) + size + size + content;
  }
  const std::uint64_t begin = file.size();
  file += directory;
  if (wide) {
    const std::uint64_t at = file.size();
    file +=
        "PK\6\6" + little_endian(44, 8) + std::string(28, '\0') + little_endian(directory.size(), 8) + little_endian(begin, 8);
    file += "PK\6\7" + little_endian(0, 4) + little_endian(at, 8) + little_endian(1, 4);
  }
  return file + "PK\5\6" + std::string(8, '\0') + little_endian(wide ? elsewhere : directory.size(), 4) +
         little_endian(wide ? elsewhere : begin, 4) + little_endian(0, 2);
}

}  // namespace trireme::tests
