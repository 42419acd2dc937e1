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

// The manifest of a checkpoint: which elements of which tensors lie in which file. Any number of ranks can use a manifest, no
// matter how many ranks wrote the checkpoint.
namespace trireme TRIREME_EXPORT {
namespace checkpoint {

// Elements of a tensor, row-major: `times` runs of `count` elements. The first run begins at `first`, and each further run
// begins `stride` elements after the run before.
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

// A part of a tensor, contiguous in one file.
struct TensorPart {
  int file = 0;                               // index in Manifest::files
  std::uint64_t offset = 0;                   // of the part's first byte in the file
  std::vector<Runs> runs = {};                // ascending
  std::vector<std::uint32_t> checksums = {};  // CRC-32C of each chunk of Manifest::chunk_bytes; the last chunk may be shorter
};

struct SavedTensor {
  std::string name;
  DType dtype = DType::float32;
  Shape shape = {};  // of the whole tensor
  bool optional = false;
  std::uint64_t digest = 0;
  std::vector<TensorPart> parts = {};  // each element lies in exactly one part
};

struct SavedFile {
  std::string name;  // a safetensors file beside the manifest
  std::uint64_t bytes = 0;
  std::uint64_t header_bytes = 0;
  std::uint32_t header_checksum = 0;  // CRC-32C
};

using SavedValue = std::variant<std::int64_t, double, std::string>;
bool is_same(const SavedValue& a, const SavedValue& b);  // like ==, but nan equals nan

// Marks a checkpoint that has only the weights of a file. A run that loads such a checkpoint starts with new optimizer state.
struct ImportedWeights {
  std::string source;  // the file
  std::string prefix;  // prefix of the names of all weights, and of no other name in a state
};

struct Manifest {
  std::int64_t step = 0;
  std::int64_t chunk_bytes = 0;
  std::optional<ImportedWeights> imported = {};
  std::map<std::string, std::string> configuration = {};
  std::map<std::string, SavedValue> values = {};
  std::vector<SavedFile> files = {};
  std::vector<SavedTensor> tensors = {};  // sorted by name

  std::uint64_t digest() const;  // of all tensors
};

std::string to_text(const Manifest& manifest);

// Parses a manifest and checks all that can be checked without the files. Throws Error{corrupt_file} with `path` and the
// reason; Error{not_available} for a format of a later version.
Manifest parse_manifest(std::string_view text, const Location& path);

}  // namespace checkpoint
}  // namespace trireme
