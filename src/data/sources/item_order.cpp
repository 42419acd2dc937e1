#include "data/sources/item_order.hpp"

#include <algorithm>

#include "data/sources/block_permutation.hpp"
#include "data/sources/mixture_order.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/sources/permutation.hpp"

namespace trireme::data {
namespace {

class Sequential : public ItemOrder {
 public:
  std::int64_t index(std::int64_t, std::int64_t position) const override { return position; }
};

class Shuffled : public ItemOrder {
 public:
  Shuffled(std::int64_t size, std::uint64_t seed) : size_(size), seed_(seed) {}
  std::int64_t index(std::int64_t epoch, std::int64_t position) const override {
    return Permutation(size_, seed_, static_cast<std::uint64_t>(epoch))(position);
  }

 private:
  std::int64_t size_;
  std::uint64_t seed_;
};

class ShuffledInBlocks : public ItemOrder {
 public:
  ShuffledInBlocks(std::int64_t size, std::int64_t block, std::int64_t blocks_at_once, std::uint64_t seed)
      : size_(size), block_(block), blocks_at_once_(blocks_at_once), seed_(seed) {}
  std::int64_t index(std::int64_t epoch, std::int64_t position) const override {
    return BlockPermutation(size_, block_, blocks_at_once_, seed_, static_cast<std::uint64_t>(epoch))(position);
  }

 private:
  std::int64_t size_;
  std::int64_t block_;
  std::int64_t blocks_at_once_;
  std::uint64_t seed_;
};

std::shared_ptr<const ItemOrder> order_of(const DatasetPart& part, const LoaderOptions& options, std::uint64_t seed) {
  const std::int64_t block = options.block == 0 ? part.neighbours : options.block;
  if (options.order == Order::sequential || part.size == endless) return std::make_shared<Sequential>();
  if (block == 1) return std::make_shared<Shuffled>(part.size, seed);
  return std::make_shared<ShuffledInBlocks>(part.size, block, options.blocks_at_once, seed);
}

}  // namespace

std::shared_ptr<const ItemOrder> make_item_order(std::span<const DatasetPart> parts, const LoaderOptions& options) {
  require(options.block >= 0, "items cannot be shuffled in blocks of {}; 0 means as the dataset says", options.block);
  require(options.blocks_at_once > 0, "blocks are shuffled at least 1 at once, got {}", options.blocks_at_once);
  DatasetPart whole{.size = 0, .neighbours = 1};
  for (const DatasetPart& part : parts) {
    require(part.neighbours > 0, "a dataset says that {} of its items are neighbours", part.neighbours);
    whole.size += part.size;
    whole.neighbours = std::max(whole.neighbours, part.neighbours);
  }
  if (options.mixture.empty()) return order_of(whole, options, options.batch.seed);
  std::vector<std::shared_ptr<const ItemOrder>> orders;
  for (const DatasetPart& part : parts) {
    orders.push_back(part.size == 0 ? nullptr
                                    : order_of(part, options, MixtureOrder::seed_of_part(options.batch.seed, orders.size())));
  }
  return std::make_shared<MixtureOrder>(parts, std::move(orders), options);
}

}  // namespace trireme::data
