#pragma once

#include <cstdint>
#include <string>

#include "data/sources/ranged_file.hpp"
#include "trireme/files/location.hpp"

namespace trireme::data {

// Where an array lies in an archive of numpy.savez.
struct NpzMember {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

// Throws Error{corrupt_file} for an archive without such an array, which names those that there are, for one that is packed,
// and for what breaks the format (zip).
NpzMember npz_member(const RangedFile& file, const Location& path, const std::string& array);

}  // namespace trireme::data
