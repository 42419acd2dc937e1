#include "trireme/autograd/shard_map.hpp"

#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "catch.hpp"
#include "trireme/core/collectives.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;

namespace {

std::vector<std::int64_t> bytes_of(FlatStore& store) {
  std::vector<std::int64_t> bytes;
  for (const int index : store.layout()) {
    const ParameterInfo& parameter = store.parameter(index);
    if (parameter.trainable) bytes.push_back(parameter.numel * static_cast<std::int64_t>(sizeof(float)));
  }
  return bytes;
}

// Parameters of so many elements, in the order of the store.
std::unique_ptr<FlatStore> store_of(const std::vector<std::int64_t>& sizes) {
  auto store = std::make_unique<FlatStore>(DType::float32);
  for (std::size_t index = sizes.size(); index-- > 0;) {
    store->add("p" + std::to_string(index), {sizes[index]}, Initializer::constant(0));
  }
  return store;
}

std::vector<std::vector<int>> blocks_of(const ShardMap& map) {
  std::vector<std::vector<int>> blocks;
  for (const ShardMap::Block& block : map.blocks()) blocks.push_back(block.parameters);
  return blocks;
}

}  // namespace

TEST_CASE("slices hold every trainable element once, whatever their size") {
  const std::vector<std::int64_t> sizes = {1, 16, 17, 1000, 3, 5000, 0, 64, 999};
  for (const std::int64_t slice_bytes : {1, 64, 65, 1000, 4096, 1 << 22}) {
    const auto store = store_of(sizes);
    const ShardMap map(*store, slice_bytes, bytes_of(*store));
    CAPTURE(slice_bytes);
    std::int64_t end = 0;
    std::vector<bool> held(static_cast<std::size_t>(store->numel()));
    for (const Range& slice : map.slices()) {
      CHECK(slice.begin >= end);
      CHECK(slice.begin % 16 == 0);
      CHECK(slice.count() > 0);
      end = slice.end;
      for (std::int64_t element = slice.begin; element < slice.end; ++element) held[static_cast<std::size_t>(element)] = true;
    }
    for (const int index : store->layout()) {
      const ParameterInfo& parameter = store->parameter(index);
      for (std::int64_t element = 0; element < parameter.numel; ++element) {
        REQUIRE(held[static_cast<std::size_t>(parameter.offset + element)]);
      }
    }
    std::vector<int> all;
    for (const auto& block : blocks_of(map)) all.insert(all.end(), block.begin(), block.end());
    CHECK(all == std::vector<int>(store->layout().begin(), store->layout().end()));
    CHECK(map.blocks().back().slices_end == map.slices().size());
    for (const int ranks : {1, 2, 3}) {
      std::int64_t parts = 0;
      std::int64_t slices = 0;
      std::set<std::int64_t> begins;
      for (int rank = 0; rank < ranks; ++rank) {
        for (const Range& part : map.of(rank, ranks)) {
          parts += part.count();
          if (part.count() > 0) begins.insert(part.begin);
        }
      }
      for (const Range& slice : map.slices()) slices += slice.count();
      CHECK(parts == slices);
      CHECK(map.bounds(ranks) == std::vector<std::int64_t>(begins.begin(), begins.end()));
    }
  }
}

TEST_CASE("a slice takes small parameters together, and a large one is cut into equal slices") {
  const auto store = store_of({100, 10, 10, 30, 1000, 10, 20});
  const ShardMap map(*store, 1600, bytes_of(*store));  // a slice ends from 25 elements on, and has at most 400
  CHECK(blocks_of(map) == std::vector<std::vector<int>>{{6}, {5, 4, 3}, {2}, {1, 0}});
  std::vector<std::int64_t> counts;
  for (const Range& slice : map.slices()) counts.push_back(slice.count());
  CHECK(counts == std::vector<std::int64_t>{100, 62, 336, 336, 328, 36});  // with the gaps inside
}

TEST_CASE("slices follow from the parameters alone: frozen ones have none, a tied one has its own") {
  FlatStore store(DType::float32);
  const int last = store.add("last", {8}, Initializer::constant(0));
  const int tied = store.add("tied", {8}, Initializer::constant(0));
  const int frozen = store.add("frozen", {8}, Initializer::constant(0));
  const int first = store.add("first", {8}, Initializer::constant(0));
  store.freeze(frozen);
  const std::vector<std::vector<int>> ranks{{0}, {0, 2}, {0}, {0}};
  REQUIRE(tied == 1);
  store.distribute(0, ranks, {});
  const ShardMap map(store, 1 << 20, bytes_of(store));
  CHECK(blocks_of(map) == std::vector<std::vector<int>>{{first}, {tied}, {last}});
  CHECK(map.slices().size() == 3);
}

TEST_CASE("a store without trainable parameters has no slices") {
  FlatStore store(DType::float32);
  store.freeze(store.add("frozen", {8}, Initializer::constant(0)));
  const ShardMap map(store, 1 << 20, {});
  CHECK(map.slices().empty());
  CHECK(map.blocks().empty());
  CHECK_THROWS_AS(ShardMap(store, 0, {}), Error);
}
