#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// The planes of one owner, such as an optimizer. Their names are unique within the owner; other owners may use the same names.
// The destructor frees their memory.
class OwnedPlanes {
 public:
  explicit OwnedPlanes(FlatStore& store) : table_(store.planes()), owner_(store.planes()->new_owner()) {}
  OwnedPlanes(const OwnedPlanes&) = delete;
  OwnedPlanes& operator=(const OwnedPlanes&) = delete;
  ~OwnedPlanes() {
    const auto table = table_.lock();  // null if the model was destroyed first
    for (const int number : numbers_) {
      if (table != nullptr) table->remove(number);
    }
  }

  int add(FlatStore& store, std::string name, const PlaneOptions& options) {
    numbers_.push_back(store.add_plane(std::move(name), options, owner_));
    return numbers_.back();
  }
  const std::vector<int>& numbers() const { return numbers_; }  // in the store, in the order added

 private:
  std::weak_ptr<PlaneTable> table_;
  std::uint64_t owner_;
  std::vector<int> numbers_;
};

}  // namespace trireme
