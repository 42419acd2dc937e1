#include "trireme/device/memory.hpp"

#include <cstdlib>
#include <set>

#include "catch.hpp"
#include "device/caching_memory.hpp"
#include "device/graph_memory.hpp"
#include "trireme/core/error.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/device/graph.hpp"
#include "trireme/tensor/tensor.hpp"

using namespace trireme;
using namespace trireme::device;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

// Has `capacity` bytes, and knows which blocks are out.
class CountedBlocks final : public BlockSource {
 public:
  CountedBlocks(std::size_t capacity, std::set<void*>& out) : free_(capacity), out_(out) {}

  void* take(std::size_t bytes) override {
    if (bytes > free_) return nullptr;
    free_ -= bytes;
    void* block = std::aligned_alloc(alignment, bytes);
    sizes_[block] = bytes;
    out_.insert(block);
    return block;
  }
  void give_back(void* block) noexcept override {
    free_ += sizes_.at(block);
    sizes_.erase(block);
    out_.erase(block);
    std::free(block);
  }
  std::string_view name() const noexcept override { return "a test's memory"; }

 private:
  std::size_t free_;
  std::set<void*>& out_;
  std::map<void*, std::size_t> sizes_;
};

}  // namespace

TEST_CASE("a freed block is what the next request of its size gets, and all go back in the end") {
  std::set<void*> out;
  {
    CachingMemory memory(std::make_unique<CountedBlocks>(16 * mib, out));
    void* first = memory.allocate(mib);
    void* small = memory.allocate(100);
    CHECK(first != small);
    memory.deallocate(first, mib);
    CHECK(memory.statistics().cached_bytes == mib);
    CHECK(memory.allocate(mib - 1) == first);
    CHECK(memory.statistics().cached_bytes == 0);
    CHECK(memory.statistics().in_use_bytes == mib + 128);
    memory.deallocate(first, mib - 1);
    memory.deallocate(small, 100);
    CHECK(memory.statistics().peak_bytes == mib + 128);
    CHECK(out.size() == 2);
    memory.release();
    CHECK(out.empty());
    memory.deallocate(memory.allocate(5), 5);
    CHECK(out.size() == 1);
  }
  CHECK(out.empty());
}

TEST_CASE("what is kept for reuse is given back before memory runs out") {
  std::set<void*> out;
  CachingMemory memory(std::make_unique<CountedBlocks>(4 * mib, out));
  memory.deallocate(memory.allocate(3 * mib), 3 * mib);
  void* block = memory.allocate(4 * mib);
  CHECK(out == std::set<void*>{block});
  memory.deallocate(block, 4 * mib);
}

TEST_CASE("an error for lack of memory says what was wanted, what is held and what for") {
  std::set<void*> out;
  CachingMemory memory(std::make_unique<CountedBlocks>(16 * mib, out));
  void* parameters = nullptr;
  {
    const MemoryPurpose purpose("parameters");
    parameters = memory.allocate(8 * mib);
  }
  void* other = memory.allocate(4 * mib);
  CHECK_THROWS_WITH(
      memory.allocate(6 * mib),
      ContainsSubstring("a test's memory has no 6.0 MiB left") &&
          ContainsSubstring("12.0 MiB in use by this thread (parameters: 8.0 MiB, activations and others: 4.0 MiB"));
  memory.deallocate(other, 4 * mib);
  void* now = memory.allocate(6 * mib);
  memory.deallocate(now, 6 * mib);
  memory.deallocate(parameters, 8 * mib);
}

TEST_CASE("a limit keeps memory for others") {
  std::set<void*> out;
  CachingMemory memory(std::make_unique<CountedBlocks>(16 * mib, out));
  memory.set_limit(4 * mib);
  void* block = memory.allocate(3 * mib);
  CHECK_THROWS_WITH(memory.allocate(2 * mib), ContainsSubstring("no 2.0 MiB left below the limit of 4.0 MiB"));
  memory.deallocate(block, 3 * mib);
  memory.deallocate(memory.allocate(4 * mib), 4 * mib);
}

TEST_CASE("a graph's memory keeps its blocks from the thread's other work as long as it lives") {
  std::set<void*> out;
  const auto of_thread = std::make_shared<CachingMemory>(std::make_unique<CountedBlocks>(16 * mib, out));
  void* warm = of_thread->allocate(mib);
  of_thread->deallocate(warm, mib);

  auto of_graph = make_graph_memory(of_thread);
  void* first = of_graph->allocate(mib);
  CHECK(first == warm);  // what warm-up has left
  void* second = of_graph->allocate(2 * mib);
  of_graph->deallocate(first, mib);
  CHECK(of_graph->allocate(mib) == first);
  of_graph->deallocate(first, mib);
  CHECK(of_thread->statistics().in_use_bytes == 3 * mib);

  void* other = of_thread->allocate(mib);
  CHECK(other != first);
  of_thread->release();
  CHECK(out.count(first) == 1);

  const std::weak_ptr<CachingMemory> alive = of_graph;
  const auto outlives = std::make_unique<Storage>(of_graph, 3 * mib);
  of_graph->deallocate(second, 2 * mib);
  of_thread->deallocate(other, mib);
  of_graph.reset();
  CHECK_FALSE(alive.expired());
  CHECK(of_thread->statistics().in_use_bytes == 6 * mib);
}

TEST_CASE("a graph's memory lies where the thread's lies") {
  class ElsewhereBlocks final : public BlockSource {
   public:
    void* take(std::size_t) override { return nullptr; }
    void give_back(void*) noexcept override {}
    std::string_view name() const noexcept override { return "elsewhere"; }
    bool on_host() const noexcept override { return false; }
  };
  CHECK_FALSE(make_graph_memory(std::make_shared<CachingMemory>(std::make_unique<ElsewhereBlocks>()))->on_host());
}

TEST_CASE("a graph's blocks are the thread's again in the end") {
  std::set<void*> out;
  const auto of_thread = std::make_shared<CachingMemory>(std::make_unique<CountedBlocks>(16 * mib, out));
  auto of_graph = make_graph_memory(of_thread);
  void* block = of_graph->allocate(mib);
  of_graph->deallocate(block, mib);
  of_graph.reset();
  CHECK(of_thread->statistics().in_use_bytes == 0);
  CHECK(of_thread->allocate(mib) == block);
  of_thread->deallocate(block, mib);
}

TEST_CASE("a graph that finds no memory says what holds it") {
  std::set<void*> out;
  const auto of_thread = std::make_shared<CachingMemory>(std::make_unique<CountedBlocks>(4 * mib, out));
  const auto of_graph = make_graph_memory(of_thread);
  CHECK_THROWS_WITH(of_graph->allocate(5 * mib), ContainsSubstring("a test's memory has no 5.0 MiB left"));
}

TEST_CASE("without a GPU there is no graph") {
  if (cuda_device_count() > 0) return;
  bool worked = false;
  CHECK_THROWS_AS(Graph([&] { worked = true; }), Error);
  CHECK_FALSE(worked);
}

TEST_CASE("without a GPU its tensors are an error that says so") {
  if (cuda_device_count() > 0) return;
  CHECK_THROWS_AS(require_cuda(), Error);
  try {
    const Tensor<float, Cuda> tensor({2});
    FAIL("made a tensor");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::not_available);
    CHECK_FALSE(error.fields().hint.empty());
  }
}
