#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/files/location.hpp"

// What a checkpoint's manifest says: which elements of which tensors lie in which file. Nothing in it depends on the number of
// ranks that wrote it or that will read it.
namespace trireme TRIREME_EXPORT {
namespace checkpoint {

// Elements of a whole tensor, row-major: `times` runs of `count`, the first from `first` on, one every `stride`.
struct Runs {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t stride = 0;
  std::int64_t times = 1;

  friend bool operator==(const Runs&, const Runs&) = default;
};

std::vector<Runs> runs_of(std::span<const Range> ranges);  // in the same order
std::vector<Range> ranges_of(std::span<const Runs> runs);
std::int64_t numel_of(std::span<const Runs> runs);

// A part of a tensor, whose elements lie in one file one after the other.
struct TensorPart {
  int file = 0;                 // index in Manifest::files
  std::uint64_t offset = 0;     // of the first byte
  std::vector<Runs> runs = {};  // ascending
  std::vector<std::uint32_t> checksums =
      {};  // CRC-32C of each chunk of Manifest::chunk_bytes, of which the last may be shorter
};

struct SavedTensor {
  std::string name;
  DType dtype = DType::float32;
  Shape shape = {};  // of the whole tensor
  bool optional = false;
  std::uint64_t digest = 0;
  std::vector<TensorPart> parts = {};  // each element lies in one of them
};

struct SavedFile {
  std::string name;  // a safetensors file beside the manifest
  std::uint64_t bytes = 0;
  std::uint64_t header_bytes = 0;
  std::uint32_t header_checksum = 0;  // CRC-32C
};

using SavedValue = std::variant<std::int64_t, double, std::string>;
bool is_same(const SavedValue& a, const SavedValue& b);  // as ==, but that nan is the same as nan

// Of a checkpoint that was made of a file of weights and holds nothing else: what goes on from it begins with the rest anew.
struct ImportedWeights {
  std::string source;  // the file
  std::string prefix;  // with which the names of all weights begin, and no other name of a state
};

struct Manifest {
  std::int64_t step = 0;
  std::int64_t chunk_bytes = 0;
  std::optional<ImportedWeights> imported = {};
  std::map<std::string, std::string> configuration = {};
  std::map<std::string, SavedValue> values = {};
  std::vector<SavedFile> files = {};
  std::vector<SavedTensor> tensors = {};  // by name

  std::uint64_t digest() const;  // of all tensors
};

std::string to_text(const Manifest& manifest);

// Checks everything that can be checked without the files. Error{corrupt_file} names `path` and what is wrong;
// Error{not_available} when a later version wrote what this one can't read.
Manifest parse_manifest(std::string_view text, const Location& path);

}  // namespace checkpoint
}  // namespace trireme
