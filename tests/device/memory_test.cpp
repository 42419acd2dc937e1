#include "trireme/device/memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <vector>

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

TEST_CASE("a large request takes a free block of up to twice its size, which keeps its size") {
  std::set<void*> out;
  CachingMemory memory(std::make_unique<CountedBlocks>(16 * mib, out));
  void* block = memory.allocate(6 * mib);
  memory.deallocate(block, 6 * mib);
  CHECK(memory.allocate(3 * mib) == block);
  CHECK(memory.statistics().in_use_bytes == 6 * mib);
  CHECK(memory.statistics().cached_bytes == 0);
  memory.deallocate(block, 3 * mib);
  CHECK(memory.statistics().in_use_bytes == 0);
  void* other = memory.allocate(2 * mib);  // less than half
  CHECK(other != block);
  CHECK(memory.allocate(6 * mib) == block);
  memory.deallocate(other, 2 * mib);
  memory.deallocate(block, 6 * mib);
  CHECK(memory.statistics().cached_bytes == 8 * mib);
}

TEST_CASE("of two free blocks that are large enough a request takes the smaller one") {
  std::set<void*> out;
  CachingMemory memory(std::make_unique<CountedBlocks>(16 * mib, out));
  void* larger = memory.allocate(4 * mib);
  void* smaller = memory.allocate(3 * mib);
  memory.deallocate(smaller, 3 * mib);
  memory.deallocate(larger, 4 * mib);
  CHECK(memory.allocate(2 * mib) == smaller);
  memory.deallocate(smaller, 2 * mib);
}

TEST_CASE("with sizes that change from step to step, what is held stays below twice what was in use at once") {
  std::set<void*> out;
  CachingMemory memory(std::make_unique<CountedBlocks>(std::size_t{1} << 40, out), 8 * mib);
  std::size_t length = 1;
  for (int step = 0; step < 300; ++step) {
    length = length * 48271 % 2147483647;
    const std::size_t bytes = (length % 500 + 1) * 100'000;
    std::vector<void*> activations;
    for (int layer = 0; layer < 6; ++layer) activations.push_back(memory.allocate((layer % 2 + 1) * bytes));
    for (int layer = 0; layer < 6; ++layer) memory.deallocate(activations[layer], (layer % 2 + 1) * bytes);
    const MemoryStatistics held = memory.statistics();
    REQUIRE(held.in_use_bytes == 0);
    REQUIRE(held.cached_bytes <= std::max(8 * mib, 2 * held.peak_bytes));
  }
}

TEST_CASE("what has been free for longest goes back first") {
  std::set<void*> out;
  CachingMemory memory(std::make_unique<CountedBlocks>(64 * mib, out), 8 * mib);
  std::vector<void*> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(memory.allocate(mib));
  for (void* block : blocks) memory.deallocate(block, mib);
  void* large = memory.allocate(7 * mib);
  memory.deallocate(large, 7 * mib);
  CHECK(out.size() == 4);
  void* larger = memory.allocate(8 * mib);  // with all of them 18 would be held, 2 more than may be
  CHECK(out.count(blocks[0]) == 0);
  CHECK(out.count(blocks[1]) == 0);
  CHECK(out.count(blocks[2]) == 1);
  CHECK(out.count(large) == 1);
  memory.deallocate(larger, 8 * mib);
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

TEST_CASE("a tensor of more bytes than can be counted is refused") {
  constexpr std::int64_t many = std::int64_t{1} << 62;
  CHECK_THROWS_WITH(Tensor<float>({many}), "a tensor of shape [4611686018427387904] has more than 2^63 bytes");
  const auto block = std::make_shared<Storage>(host_memory(), 64);
  CHECK_THROWS_AS(Tensor<float>({many}, block), Error);
  CHECK_THROWS_AS(Tensor<float>({1}, block, std::size_t{1} << 62), Error);
  CHECK(Tensor<float>({15}, block, 1).numel() == 15);
  CHECK_THROWS_AS(Tensor<float>({16}, block, 1), Error);
  CHECK_THROWS_AS(Tensor<float>({4}).narrow(1, std::numeric_limits<std::int64_t>::max()), Error);
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
