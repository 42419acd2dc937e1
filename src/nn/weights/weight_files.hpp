#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trireme/core/range.hpp"
#include "trireme/files/location.hpp"
#include "trireme/files/safetensors.hpp"

namespace trireme::nn {

// A tensor of one of the files.
struct StoredTensor {
  const SafetensorsFile* file = nullptr;
  const SafetensorsEntry* entry = nullptr;

  explicit operator bool() const { return entry != nullptr; }
};

// The tensors at `path`: of a safetensors file, or of a folder as transformers writes it, with model.safetensors or the shards
// that model.safetensors.index.json names.
class WeightFiles {
 public:
  explicit WeightFiles(const Location& path);

  const Location& path() const { return path_; }
  StoredTensor find(std::string_view name) const;
  const std::vector<StoredTensor>& all() const { return all_; }  // by name

 private:
  void open_shards(const Location& index);

  Location path_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::vector<StoredTensor> all_;
};

// Whether there are weights at `path`.
bool has_weights(const Location& path);

// Reads an index of shards: maps a tensor's name to the name of its file, which lies beside the index.
std::map<std::string, std::string> read_shard_index(const Location& path);

// Rows [rows.begin, rows.end) of dim 0 of a tensor of float32, bfloat16 or float16.
std::vector<float> read_rows(const StoredTensor& tensor, const Range& rows);

}  // namespace trireme::nn
