#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {

// Of eight bytes at a time, then of those that are left.
std::uint64_t digest_of_bytes(std::span<const std::byte> bytes);

// A number that follows from all bytes of a file, by its name. Of a path to 64 MiB or more it is kept, in a hidden file beside
// it or else in the user's cache: while the file's size, its times and samples of its bytes stay the same, it is not read
// again.
std::uint64_t number_of_file(const Location& location, const std::string& name,
                             const std::function<std::uint64_t(std::span<const std::byte>)>& compute);

// In words that differ where the content does, a size and a digest: of a file's bytes, or of all files in a folder and its
// subfolders, also those that links lead to, with their names. Names that begin with a dot are passed over. Digests of large
// files are kept, as above. Error{io} names what can't be read.
std::string content_at(const Location& location);

}  // namespace trireme
