#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"

namespace trireme TRIREME_EXPORT {

// The part of a store's trainable range that this rank's optimizers update, if ranks share that work. An optimizer updates the
// parameters inside ranges(), in their order, and reports each finished range to a Publication.
class Shard {
 public:
  Shard(std::vector<Range> ranges, bool fixed_bits, std::vector<std::int64_t> bounds = {})
      : ranges_(std::move(ranges)), fixed_bits_(fixed_bits), bounds_(std::move(bounds)) {
    for (const Range& range : ranges_) numel_ += range.count();
  }
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  virtual ~Shard() = default;

  const std::vector<Range>& ranges() const { return ranges_; }  // ascending; some may be empty
  std::int64_t numel() const { return numel_; }                 // of all ranges together

  // The beginnings of all ranks' ranges, ascending; the same on all ranks. Optimizers that update in blocks use bounds() to
  // find the parameters that are divided over ranks. Empty: each parameter lies in one range.
  const std::vector<std::int64_t>& bounds() const { return bounds_; }

  // Whether training gives the same bits with any number of ranks.
  bool fixed_bits() const { return fixed_bits_; }

  // Sends new values to the other ranks. All ranks make the same sequence of publications.
  class Publication {
   public:
    Publication() = default;
    Publication(const Publication&) = delete;
    Publication& operator=(const Publication&) = delete;
    virtual ~Publication() = default;
    virtual void updated(std::size_t range) = 0;  // after each range of ranges(): its values are final
    virtual void finish() = 0;                    // after all ranges: returns when this rank holds every rank's new values
  };
  virtual std::unique_ptr<Publication> publish() = 0;

  // All-reduces `values`, in memory of the store's device. Use this function for norms of parameters that several ranks update,
  // or for the elements of such parameters. For elements, each rank passes zeros in the places of other ranks. On a GPU the
  // sums are ready for the GPU's next work.
  virtual void sum_over_ranks(std::span<double> values) = 0;
  virtual void sum_over_ranks(std::span<float> values) = 0;

 private:
  std::vector<Range> ranges_;
  std::int64_t numel_ = 0;
  bool fixed_bits_;
  std::vector<std::int64_t> bounds_;
};

}  // namespace trireme
