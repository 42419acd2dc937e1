#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/autograd/tape.hpp"

namespace trireme {

// A function that is recomputed, while it runs. The first run fills uses, once, layers, calls and needed. A further run
// compares with uses and takes the values of once; next_use, next_once and operations are its places.
struct Tape::Run {
  struct Use {
    const FlatStore* store;
    int parameter;
    std::uint64_t version;  // of the parameter's values
    bool operator==(const Use&) const = default;
  };

  bool repeats = false;
  bool recorded = false;                                  // an operation
  std::vector<Use> uses = {};                             // of parameters, in their order
  std::vector<std::any> once = {};                        // what Tape::once() returned
  std::vector<std::shared_ptr<GradientSlot>> added = {};  // of losses that add_loss() got in this run
  std::int64_t operations = 0;                            // recorded so far
  std::int64_t needed = 0;                                // how many of them compute what is kept, from the first one on
  std::size_t next_use = 0;
  std::size_t next_once = 0;
  std::shared_ptr<const LayersAround> layers = {};  // around the first run
  StreamCalls::OfStreams calls = {};                // before the first run
};

}  // namespace trireme
