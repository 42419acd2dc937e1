#pragma once

#include <map>
#include <string>
#include <vector>

#include "trireme/checkpoint/manifest.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/core/state.hpp"

namespace trireme::checkpoint {

// What one rank holds of a state.
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

// A part of a tensor, and who deals with it: of the ranks that hold it one. It may be less than that rank holds.
struct PlannedPart {
  std::vector<Runs> runs = {};
  int rank = 0;
};
struct PlannedTensor {
  std::string name;
  DType dtype = DType::float32;
  Shape shape = {};
  bool optional = false;
  std::vector<PlannedPart> parts = {};  // each element lies in one of them
};
struct Plan {
  std::vector<PlannedTensor> tensors;  // by name
  std::map<std::string, SavedValue> values;

  // The parts of a rank, in the order of its file: wide elements first, so that each begins at a multiple of its size.
  struct Place {
    std::size_t tensor = 0;
    std::size_t part = 0;
  };
  std::vector<Place> places_of(int rank) const;
};

// The same on all ranks. Shares out what several ranks hold so that all have about equally many bytes. Error{rank_mismatch}
// names a tensor of which ranks think differently, a value that differs, elements that no rank holds.
Plan make_plan(const std::vector<Inventory>& by_rank);

Plan make_plan(const Group& group, const State& state);  // collective; prepares the state first

// The elements of `ranges` that do not lie in `taken`; both ascending.
std::vector<Range> without(const std::vector<Range>& ranges, const std::vector<Range>& taken);

// Where elements of a tensor that are here lie; ascending.
std::vector<StatePiece> pieces_of(const std::vector<Range>& ranges, const StateTensor& tensor);

}  // namespace trireme::checkpoint
