#pragma once

#include <map>
#include <string>
#include <vector>

#include "trireme/checkpoint/manifest.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/core/state.hpp"

namespace trireme::checkpoint {

// The part of a state that one rank holds.
struct Inventory {
  struct Tensor {
    std::string name;
    DType dtype = DType::float32;
    Shape shape = {};
    bool optional = false;
    std::vector<Runs> runs = {};
  };
  std::vector<Tensor> tensors;
  std::map<std::string, SavedValue> values;
};

Inventory inventory_of(const State& state);
std::string to_text(const Inventory& inventory);
Inventory parse_inventory(std::string_view text);

// A part of a tensor, and the rank that saves or checks it: one of those that hold it. That rank may hold more of the tensor.
struct PlannedPart {
  std::vector<Runs> runs = {};
  int rank = 0;
};
struct PlannedTensor {
  std::string name;
  DType dtype = DType::float32;
  Shape shape = {};
  bool optional = false;
  std::vector<PlannedPart> parts = {};  // each element lies in exactly one part
};
struct Plan {
  std::vector<PlannedTensor> tensors;  // sorted by name
  std::map<std::string, SavedValue> values;

  // The parts of a rank in the order of its file: wide elements first, so that each part is aligned to its element size.
  struct Place {
    std::size_t tensor = 0;
    std::size_t part = 0;
  };
  std::vector<Place> places_of(int rank) const;
};

// Makes the same plan on all ranks. Divides parts that several ranks hold so that ranks get about the same number of bytes.
// Throws Error{rank_mismatch} with the name of a tensor or value that differs between ranks, or that has elements which no rank
// holds.
Plan make_plan(const std::vector<Inventory>& by_rank);

Plan make_plan(const Group& group, const State& state);  // collective; prepares the state first

// The elements of `ranges` that are not in `taken`; both ascending.
std::vector<Range> without(const std::vector<Range>& ranges, const std::vector<Range>& taken);

// The places in memory of elements that this rank holds; ascending.
std::vector<StatePiece> pieces_of(const std::vector<Range>& ranges, const StateTensor& tensor);

}  // namespace trireme::checkpoint
