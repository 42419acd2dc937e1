#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// A file of a sample.
struct TarField {
  std::string extension;  // in lower case, for example "jpg" or "seg.png"
  std::span<const std::byte> bytes = {};

  std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

// Files of an archive that follow each other and have the same key.
struct TarSample {
  std::string key;                               // "train/0001"
  std::vector<TarField> fields = {};             // in the order of the archive
  std::shared_ptr<const std::byte> memory = {};  // keeps the bytes; copies of the sample share them
  Location shard = {};

  const TarField* find(std::string_view extension) const;  // null if there is none
  const TarField& at(std::string_view extension) const;    // throws BadSample if there is none
};

struct TarOptions {
  int workers = 0;  // threads that index the shards; 0: all threads of this rank
};

// Samples in tar archives, in WebDataset's format: a dataset for Loader that need not fit into memory.
//
//   const data::TarShards shards(data::locations_of("train-{000..099}.tar"));
//   const data::TarSample sample = shards.at(12'345);
//   sample.at("jpg").bytes, sample.at("cls").text()
//
// A file's key ends at the first dot after the last slash; the rest is its extension. Files of one shard that follow each other
// and have the same key are a sample. Files without an extension, hidden files, names below __meta__ and the like, folders and
// devices are skipped. Links are not followed: a link that would be a file of a sample is an Error.
//
// The constructor reads each shard's headers once. write_index() saves the places of samples beside the shard, in x.tar.index.
// An index is used if the size, beginning and end of its shard equal those in the index. A sample takes 8 bytes of memory.
// Local shards are mapped, and a sample's bytes are not copied; from other shards at() reads a sample with one request. Several
// threads may call at().
//
// Throws Error{corrupt_file} with the shard and the offset for damaged archives, two files of one sample with the same
// extension, names that lead outside of the archive (../x, /x), sparse files, and compressed archives.
class TarShards {
 public:
  explicit TarShards(std::vector<Location> shards, const TarOptions& options = {});

  std::int64_t size() const;  // samples
  TarSample at(std::int64_t index) const;
  const std::vector<Location>& shards() const;

  void write_index() const;  // for each shard that has no valid index

  // A text that identifies the content, made from the shards' sizes, beginnings and ends, and from the places of samples.
  friend std::string content_of(const TarShards& shards);

 private:
  struct State;
  std::shared_ptr<const State> state_;
};
std::string content_of(const TarShards& shards);

}  // namespace data
}  // namespace trireme
