#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/sources/ranged_file.hpp"
#include "trireme/files/location.hpp"

namespace trireme::data {

// The header of a file that numpy.save wrote.
struct NpyHeader {
  std::string element;         // numpy's descr: byte order, kind and bytes, for example "<f4"
  bool columns_first = false;  // fortran_order: the first dim changes fastest
  std::vector<std::int64_t> dims;
  std::uint64_t begin = 0;  // byte offset of the first element
  std::uint64_t bytes = 0;  // from there to the end of the array
};

[[noreturn]] void refuse_npy(const Location& path, std::string message, std::string hint = {});

// Reads the header of the file or, if `array` has a name, of that array in an archive of numpy.savez. `path` is used in errors.
NpyHeader read_npy_header(const RangedFile& file, const Location& path, const std::string& array);

}  // namespace trireme::data
