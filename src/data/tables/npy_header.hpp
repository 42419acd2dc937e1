#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/files/file_system.hpp"

namespace trireme::data {

// What a file of numpy.save says before its elements.
struct NpyHeader {
  std::string element;         // as numpy names it, "<f4": byte order, kind and bytes
  bool columns_first = false;  // the first dim changes from element to element
  std::vector<std::int64_t> dims;
  std::uint64_t begin = 0;  // the byte of the first element
};

[[noreturn]] void refuse_npy(const Location& path, std::string message, std::string hint = {});

// `path` is named in errors.
NpyHeader read_npy_header(const InputFile& file, const Location& path);

}  // namespace trireme::data
