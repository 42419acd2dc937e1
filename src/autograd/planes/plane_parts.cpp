#include "trireme/autograd/planes/plane_parts.hpp"

#include <string_view>
#include <utility>

namespace trireme {
namespace {

// Returns a place within an existing block as memory, and keeps the block alive.
class InBlock final : public device::MemoryResource {
 public:
  InBlock(std::shared_ptr<device::Storage> block, std::size_t begin) : block_(std::move(block)), begin_(begin) {}
  std::string_view name() const noexcept override { return "part of a plane"; }

 private:
  void* do_allocate(std::size_t /*bytes*/) override { return static_cast<std::byte*>(block_->data()) + begin_; }
  void do_deallocate(void* /*block*/, std::size_t /*bytes*/) noexcept override {}

  std::shared_ptr<device::Storage> block_;
  std::size_t begin_;
};

}  // namespace

PlaneParts::PlaneParts(const std::shared_ptr<device::Storage>& block, std::span<const Range> elements,
                       std::size_t element_bytes) {
  for (const Range& range : elements) {
    const auto begin = static_cast<std::size_t>(range.begin) * element_bytes;
    const auto bytes = static_cast<std::size_t>(range.count()) * element_bytes;
    const bool is_here = begin <= block->bytes() && bytes <= block->bytes() - begin;
    parts_.push_back(is_here ? std::make_shared<device::Storage>(std::make_shared<InBlock>(block, begin), bytes) : nullptr);
  }
}

}  // namespace trireme
