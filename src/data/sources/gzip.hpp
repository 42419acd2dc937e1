#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "trireme/files/location.hpp"

namespace trireme::data {

// Unpacks the bytes of a gzip file (RFC 1952); `path` is used in errors. Throws Error{corrupt_file}, and Error{not_available}
// in a build without zlib.
std::vector<std::uint8_t> gunzip(std::span<const std::uint8_t> bytes, const Location& path);

// The same of a file whose bytes come in pieces.
class Gunzip {
 public:
  explicit Gunzip(Location path);
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  // Gives what the piece unpacks to, in pieces too.
  void unpack(std::span<const std::uint8_t> bytes, const std::function<void(std::span<const std::uint8_t>)>& take);
  void finish() const;  // a file that ends early is corrupt

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trireme::data
