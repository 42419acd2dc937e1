#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trireme/core/state.hpp"

namespace trireme::test {

// How ranks hold one tensor.
enum class Spread : std::uint8_t {
  replicated,
  rows,         // each rank some rows
  columns,      // each rank some columns
  flat,         // each rank a range of elements, uneven, some none
  pairs,        // ranks 2k and 2k + 1 hold the same columns
  first_rank,   // of a stage
  overlapping,  // each rank a range and half of the next one's
};

// A state of several tensors of all kinds and some values; the layout decides which part this rank holds. Its content depends
// only on (seed, name, element).
class SampleState {
 public:
  // `layout`: shifts which tensor is divided in which way.
  SampleState(int rank, int ranks, int layout, bool with_optional = false);

  State& state() { return state_; }
  void fill(std::uint64_t seed);
  std::string difference(std::uint64_t seed) const;  // empty: all is as fill(seed) makes it

 private:
  struct Held {
    std::vector<std::vector<std::byte>> pieces;
  };

  void add(const std::string& name, DType dtype, const Shape& shape, Spread spread, bool optional = false);
  template <typename Visit>
  void visit(std::uint64_t seed, const Visit& visit) const;

  int rank_;
  int ranks_;
  std::map<std::string, Held> held_;
  std::int64_t steps_ = 0;
  double rate_ = 0;
  std::string text_;
  State state_;
};

}  // namespace trireme::test
