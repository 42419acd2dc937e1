#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/files/file_system.hpp"

namespace trireme::data {

// The header of a file that numpy.save wrote.
struct NpyHeader {
  std::string element;         // numpy's descr: byte order, kind and bytes, for example "<f4"
  bool columns_first = false;  // fortran_order: the first dim changes fastest
  std::vector<std::int64_t> dims;
  std::uint64_t begin = 0;  // byte offset of the first element
};

[[noreturn]] void refuse_npy(const Location& path, std::string message, std::string hint = {});

// `path` is used in errors.
NpyHeader read_npy_header(const InputFile& file, const Location& path);

}  // namespace trireme::data
