#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"
#include "trireme/device/memory.hpp"

namespace trireme TRIREME_EXPORT {

// The parts of a plane's block that belong to each parameter or buffer, as blocks that count their own changes.
class PlaneParts {
 public:
  PlaneParts() = default;
  // elements: the range of each part, by index. Ranges beyond the block get no part.
  PlaneParts(const std::shared_ptr<device::Storage>& block, std::span<const Range> elements, std::size_t element_bytes);

  bool has(int index) const {
    const auto at = static_cast<std::size_t>(index);
    return at < parts_.size() && parts_[at] != nullptr;
  }
  const std::shared_ptr<device::Storage>& operator[](int index) const { return parts_[static_cast<std::size_t>(index)]; }

 private:
  std::vector<std::shared_ptr<device::Storage>> parts_;
};

}  // namespace trireme
