#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {

// One digest of all bytes: the digest of the 64-bit words plus the digest of the bytes after the last word.
std::uint64_t digest_of_bytes(std::span<const std::byte> bytes);

// Calls compute() on the bytes of a file and returns its result, which must depend only on the bytes and on `name`. For a local
// file of 64 MiB or more the result is cached, in a hidden file beside that file or in the user's cache folder. The cache is
// valid as long as the file's size, times and samples of its bytes stay the same.
std::uint64_t number_of_file(const Location& location, const std::string& name,
                             const std::function<std::uint64_t(std::span<const std::byte>)>& compute);

// Returns a text of size and digest. The text identifies the content of a file; for a folder, it identifies the names and
// contents of all files in the folder and its subfolders. Follows links and skips names that begin with a dot. For a file above
// 16 GiB, the digest covers 16 GiB in evenly spaced pieces. Digests are cached as by number_of_file(). Throws Error{io} that
// names the file or folder that can't be read.
std::string content_at(const Location& location);

// The same of a file without reading it where it lies elsewhere and its server states a version, such as an ETag: the file's
// size and this version. A server without versions is logged: there the file is read.
std::string content_or_version_at(const Location& file);

}  // namespace trireme
