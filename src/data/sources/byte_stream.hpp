#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/sources/gzip.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::data {

// A file from a byte on, in pieces; of a name that ends in .gz what it unpacks to, and bytes are counted in that.
class ByteStream {
 public:
  ByteStream(const Location& path, std::int64_t from);

  bool read(std::string& into);  // appends the next bytes; false: there are no more

 private:
  std::unique_ptr<InputFile> file_;
  std::uint64_t size_ = 0;
  std::uint64_t at_ = 0;    // the next byte of the file
  std::uint64_t skip_ = 0;  // unpacked bytes before the first
  std::unique_ptr<Gunzip> packed_;
  std::string piece_;
};

}  // namespace trireme::data
