#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trireme/autograd/planes/plane_device.hpp"
#include "trireme/autograd/planes/plane_parts.hpp"
#include "trireme/autograd/planes/shard.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/first_use.hpp"
#include "trireme/core/range.hpp"
#include "trireme/device/memory.hpp"

namespace trireme TRIREME_EXPORT {

// The elements of the store that a plane covers, with one number for each.
enum class Extent : std::uint8_t {
  all,        // of all parameters that lie here
  trainable,  // of the parameters that have gradients
  shard,      // of the elements that this rank updates: the ranges of the store's Shard; without a Shard, as trainable
};

// The memory in which a plane lies while it is not visited.
enum class Home : std::uint8_t {
  device,  // where the store lies
  host,    // in host memory; for a store on a GPU, a visit copies each piece to the GPU and back
};

struct PlaneOptions {
  DType dtype = DType::float32;
  Extent extent = Extent::shard;
  Home home = Home::device;
  double initial = 0;  // of every element; must be 0 unless the plane is of float32 or float64
};

// The planes of a FlatStore. A plane's memory is allocated at its first use, by any thread. Changing the plane's extent
// afterwards is an error.
class PlaneTable {
 public:
  // A contiguous piece: a range of the store, and the address of its first element in each visited plane. The addresses are
  // valid until the visit of this piece ends.
  struct Piece {
    Range range;
    std::span<void* const> elements;
  };

  explicit PlaneTable(const PlaneDevice& device) : device_(&device) {}

  // Planes of one owner must have different names. Owner 0 is the store.
  int add(std::string name, const PlaneOptions& options, std::uint64_t owner);
  void remove(int plane);  // frees the plane's memory; no other plane gets its number
  std::uint64_t new_owner() { return ++owners_; }

  // parts: the elements of each parameter. The store's own planes count the changes of each part.
  void lay_out(std::int64_t numel, std::int64_t trainable_numel, std::vector<Range> parts);
  void set_shard(std::shared_ptr<Shard> shard);
  const std::shared_ptr<Shard>& shard() const { return shard_; }

  const PlaneOptions& options(int plane) const { return at(plane).options; }
  const std::string& name(int plane) const { return at(plane).name; }
  const PlaneDevice& device_of(int plane) const { return device_at(at(plane)); }  // where the plane's memory is
  std::int64_t numel(int plane) const { return numel_of(at(plane)); }
  std::span<const Range> ranges(int plane) const;  // of the store, which lie in the plane one after the other

  const std::shared_ptr<device::Storage>& memory(int plane) {
    Entry& entry = at(plane);
    entry.has_memory.make_once([&] { make_memory(entry); });
    if (entry.options.extent == Extent::shard && entry.shard != shard_) [[unlikely]]
      require_same_shard(entry);
    return entry.memory;
  }
  const PlaneParts& parts(int plane) const { return at(plane).parts; }            // of the memory, after its allocation
  bool lies_at(int plane, const void* memory) const;                              // false for a plane that was removed
  void move(int plane, const std::shared_ptr<device::MemoryResource>& resource);  // into memory of the same device

  static std::size_t bytes_of(std::int64_t count, DType dtype);

  // A visit of some planes.
  class Walk {
   public:
    Walk(PlaneTable& table, std::span<const int> planes);
    void require_here(const Range& range) const;  // in all planes
    Piece begin(const Range& rest);               // the first piece of a range that lies here and is not empty
    void end(const Piece& piece);

   private:
    struct Column {
      int plane = 0;
      std::byte* memory = nullptr;
      std::size_t element_bytes = 0;
      Extent extent = Extent::all;
      bool is_staged = false;  // at home on the host, for a store on a GPU
      std::shared_ptr<device::Storage> stage = {};
    };
    std::byte* find(const Column& column, const Range& range) const;

    const PlaneTable& table_;
    std::vector<Column> columns_;
    std::vector<void*> elements_;  // of the piece, by column
    bool stages_ = false;
  };

 private:
  struct Entry {
    std::string name;
    PlaneOptions options;
    std::uint64_t owner;
    bool removed = false;
    FirstUse has_memory = {};
    std::shared_ptr<device::Storage> memory = {};
    std::shared_ptr<Shard> shard = {};  // the memory holds its ranges
    PlaneParts parts = {};
  };
  // Neighbouring ranges of the shard, and where they lie in a plane.
  struct Held {
    Range range;
    std::int64_t in_plane;
  };

  const Entry& at(int plane) const {
    const auto place = static_cast<std::size_t>(plane);
    if (plane < 0 || place >= entries_.size() || entries_[place].removed) [[unlikely]]
      refuse(plane);
    return entries_[place];
  }
  Entry& at(int plane) { return const_cast<Entry&>(std::as_const(*this).at(plane)); }
  [[noreturn]] void refuse(int plane) const;
  void make_memory(Entry& entry);
  void take(Entry& entry, std::shared_ptr<device::Storage> memory) const;
  std::shared_ptr<device::Storage> filled(const Entry& entry, const std::shared_ptr<device::MemoryResource>& resource) const;
  void require_same_shard(const Entry& entry) const;
  const PlaneDevice& device_at(const Entry& entry) const;
  std::int64_t numel_of(const Entry& entry) const;
  const Held* held(const Range& range) const;  // the one that contains the whole range, or null

  const PlaneDevice* device_;
  std::deque<Entry> entries_;  // by number
  std::uint64_t owners_ = 0;
  Range all_ = {};
  Range trainable_ = {};
  std::vector<Range> parts_;
  std::shared_ptr<Shard> shard_;
  std::vector<Held> held_;  // of the shard, ascending
};

}  // namespace trireme
