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
#include "trireme/files/file_memory.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme TRIREME_EXPORT {

using SafetensorsMetadata = std::map<std::string, std::string>;

// One tensor of a safetensors file.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::float32;
  Shape shape = {};
  std::uint64_t begin = 0;  // bytes [begin, end) of the file
  std::uint64_t end = 0;

  std::size_t bytes() const { return static_cast<std::size_t>(end - begin); }
};

// A safetensors file, opened for reading. The constructor checks the whole header and throws Error{corrupt_file} with file and
// tensor if the header breaks the format.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const Location& location);
  SafetensorsFile(std::shared_ptr<const InputFile> file, const Location& location);  // that is open

  const Location& path() const noexcept { return path_; }
  std::span<const SafetensorsEntry> tensors() const noexcept { return tensors_; }  // sorted by name
  const SafetensorsMetadata& metadata() const noexcept { return metadata_; }

  const SafetensorsEntry* find(std::string_view name) const;            // null if there is none
  const SafetensorsEntry& at(std::string_view name) const;              // throws Error if there is none
  void check_dtype(const SafetensorsEntry& entry, DType wanted) const;  // throws Error if the entry has another dtype

  // Reads the bytes of a tensor, row-major, little-endian; `into` must have the same size. A bool becomes 0 or 1: every byte of
  // the file that is not 0 counts as true.
  void read(std::string_view name, std::span<std::byte> into) const;
  std::vector<std::byte> read_bytes(std::string_view name) const;
  void read_part(std::string_view name, std::size_t first_byte, std::span<std::byte> into) const;  // a part of a tensor's bytes

  // The elements of a tensor. Throws Error if it is not stored as T.
  template <typename T>
  std::vector<T> read_values(std::string_view name) const {
    const SafetensorsEntry& entry = at(name);
    check_dtype(entry, dtype_of<T>);
    std::vector<T> values = elements_for<T>(entry.bytes() / sizeof(T), path_);
    read(name, std::as_writable_bytes(std::span(values)));
    return values;
  }

 private:
  Location path_;
  std::shared_ptr<const InputFile> file_;
  std::vector<SafetensorsEntry> tensors_;
  SafetensorsMetadata metadata_;
};

// Returns the header of a safetensors file with these tensors, for a program that writes the file piece by piece. The bytes of
// the tensors must follow the header in this order without gaps. Does not read TensorRef::data. `path` is used in errors.
std::string safetensors_header(std::span<const TensorRef> tensors, const SafetensorsMetadata& metadata, const Location& path);

// Writes the tensors to `path`; replaces an old file only after all bytes are on the disk.
void write_safetensors(const Location& path, std::span<const TensorRef> tensors, const SafetensorsMetadata& metadata = {});

}  // namespace trireme
