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

// What one file of a sample holds.
struct TarField {
  std::string extension;  // in small letters: "jpg", "seg.png"
  std::span<const std::byte> bytes = {};

  std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

// Neighbouring files of an archive that have a key in common.
struct TarSample {
  std::string key;                               // "train/0001"
  std::vector<TarField> fields = {};             // in the archive's order
  std::shared_ptr<const std::byte> memory = {};  // keeps their bytes, which copies of the sample share
  Location shard = {};

  const TarField* find(std::string_view extension) const;  // null where there is none
  const TarField& at(std::string_view extension) const;    // throws Error{corrupt_file}
};

struct TarOptions {
  int workers = 0;  // threads that look through shards at first; 0: all of this rank
};

// Samples in archives of tar, as WebDataset has them: a dataset for Loader that need not fit into memory.
//
//   const data::TarShards shards(data::locations_of("train-{000..099}.tar"));
//   const data::TarSample sample = shards.at(12'345);
//   sample.at("jpg").bytes, sample.at("cls").text()
//
// A file's key goes up to the first dot after the last slash, the rest is its extension. Neighbours with the same key are a
// sample, of one shard. Passed over are files without an extension, hidden ones, names below __meta__ and the like, folders
// and devices. A link that would be a file of a sample is an Error: what it leads to is not followed.
//
// Shards are looked through once for where samples lie. write_index() keeps that beside each, in x.tar.index, which is used
// where it is of this very shard: size, beginning and end are compared. In memory a sample takes 8 bytes. Files of this machine
// are mapped, a sample's bytes are theirs; of others at() reads the sample by one request. Threads may call at().
//
// Throws Error{corrupt_file} with the shard and the byte for damaged archives, two files of a sample with one extension, names
// that lead outside (../x, /x), files with holes, and archives that are packed.
class TarShards {
 public:
  explicit TarShards(std::vector<Location> shards, const TarOptions& options = {});

  std::int64_t size() const;  // samples
  TarSample at(std::int64_t index) const;
  const std::vector<Location>& shards() const;

  void write_index() const;  // of each shard that has none that is used

  friend std::string content_of(const TarShards& shards);  // of digests of sizes, beginnings and ends, and where samples lie

 private:
  struct State;
  std::shared_ptr<const State> state_;
};
std::string content_of(const TarShards& shards);

}  // namespace data
}  // namespace trireme
