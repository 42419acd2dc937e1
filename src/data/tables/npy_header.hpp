#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/sources/ranged_file.hpp"
#include "trireme/files/location.hpp"

namespace trireme::data {

// What a file of numpy.save says before its elements.
struct NpyHeader {
  std::string element;         // as numpy names it, "<f4": byte order, kind and bytes
  bool columns_first = false;  // the first dim changes from element to element
  std::vector<std::int64_t> dims;
  std::uint64_t begin = 0;  // the byte of the first element
  std::uint64_t bytes = 0;  // from there to the array's end
};

[[noreturn]] void refuse_npy(const Location& path, std::string message, std::string hint = {});

// Of the file itself or, where `array` has a name, of that array in an archive of numpy.savez. `path` is named in errors.
NpyHeader read_npy_header(const RangedFile& file, const Location& path, const std::string& array);

}  // namespace trireme::data
