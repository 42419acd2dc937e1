#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/dtype.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/core/tensor_ref.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme TRIREME_EXPORT {

using SafetensorsMetadata = std::map<std::string, std::string>;

// One tensor of a safetensors file.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::float32;
  Shape shape = {};
  std::uint64_t begin = 0;  // its bytes in the file are [begin, end)
  std::uint64_t end = 0;

  std::size_t bytes() const { return static_cast<std::size_t>(end - begin); }
};

// A safetensors file to read from. The constructor checks the whole header: what breaks the format is an
// Error{corrupt_file} that names the file and the tensor.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const Location& location);

  const Location& path() const noexcept { return path_; }
  std::span<const SafetensorsEntry> tensors() const noexcept { return tensors_; }  // sorted by name
  const SafetensorsMetadata& metadata() const noexcept { return metadata_; }

  const SafetensorsEntry* find(std::string_view name) const;            // null when there is none
  const SafetensorsEntry& at(std::string_view name) const;              // throws when there is none
  void check_dtype(const SafetensorsEntry& entry, DType wanted) const;  // throws when the entry has another one

  // The bytes of one tensor, row-major, little-endian; `into` has its size. Of bool each is 0 or 1, whatever the file has for
  // true.
  void read(std::string_view name, std::span<std::byte> into) const;
  std::vector<std::byte> read_bytes(std::string_view name) const;
  void read_part(std::string_view name, std::size_t first_byte, std::span<std::byte> into) const;  // of these bytes

  // The elements of one tensor that is stored as T; another dtype is an error.
  template <typename T>
  std::vector<T> read_values(std::string_view name) const {
    const SafetensorsEntry& entry = at(name);
    check_dtype(entry, dtype_of<T>);
    std::vector<T> values(entry.bytes() / sizeof(T));
    read(name, std::as_writable_bytes(std::span(values)));
    return values;
  }

 private:
  Location path_;
  std::unique_ptr<InputFile> file_;
  std::vector<SafetensorsEntry> tensors_;
  SafetensorsMetadata metadata_;
};

// What a file of these tensors has ahead of their bytes, which follow in this order without gaps: for those who write it piece
// by piece. Nothing is read through `data`. `path` is named in errors.
std::string safetensors_header(std::span<const TensorRef> tensors, const SafetensorsMetadata& metadata, const Location& path);

// Writes the tensors to `path`, replacing what was there only when all is on the disk.
void write_safetensors(const Location& path, std::span<const TensorRef> tensors, const SafetensorsMetadata& metadata = {});

}  // namespace trireme
