#include "device/graph_memory.hpp"

#include <utility>

namespace trireme::device {
namespace {

class BlocksOfThread final : public BlockSource {
 public:
  explicit BlocksOfThread(std::shared_ptr<CachingMemory> memory) : memory_(std::move(memory)) {}

  void* take(std::size_t bytes) override {
    void* block = memory_->allocate(bytes);
    sizes_.emplace(block, bytes);
    return block;
  }
  void give_back(void* block) noexcept override { memory_->deallocate(block, sizes_.extract(block).mapped()); }
  std::string_view name() const noexcept override { return memory_->name(); }
  bool on_host() const noexcept override { return memory_->on_host(); }

 private:
  std::shared_ptr<CachingMemory> memory_;
  std::unordered_map<void*, std::size_t> sizes_;
};

}  // namespace

std::shared_ptr<CachingMemory> make_graph_memory(std::shared_ptr<CachingMemory> thread_memory) {
  return std::make_shared<CachingMemory>(std::make_unique<BlocksOfThread>(std::move(thread_memory)));
}

}  // namespace trireme::device
