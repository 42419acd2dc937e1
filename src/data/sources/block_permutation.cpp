#include "data/sources/block_permutation.hpp"

#include <algorithm>

#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"

namespace trireme::data {
namespace {

constexpr std::uint64_t order_of_blocks = hash_name("trireme.data.blocks");
constexpr std::uint64_t order_in_group = hash_name("trireme.data.group_of_blocks");
constexpr std::uint64_t place_of_short_block = hash_name("trireme.data.short_block");

}  // namespace

BlockPermutation::BlockPermutation(std::int64_t size, std::int64_t block, std::int64_t blocks_at_once, std::uint64_t seed,
                                   std::uint64_t epoch)
    : size_(size), block_(std::min(block, size)), blocks_at_once_(blocks_at_once), seed_(seed), epoch_(epoch) {
  require(size > 0 && block > 0 && blocks_at_once > 0, "{} elements in blocks of {}, {} at once, cannot be shuffled", size,
          block, blocks_at_once);
  num_blocks_ = (size - 1) / block_ + 1;
  blocks_at_once_ = std::min(blocks_at_once, num_blocks_);
  lacking_ = block_ - 1 - (size - 1) % block_;
  const double drawn = philox_uniform(seed, place_of_short_block, epoch);
  short_slot_ = static_cast<std::int64_t>(drawn * static_cast<double>(num_blocks_)) % num_blocks_;
}

// The last block has its slot; the others fill the slots around it.
std::int64_t BlockPermutation::block_at(std::int64_t slot) const {
  if (slot == short_slot_) return num_blocks_ - 1;
  const Permutation order(num_blocks_ - 1, seed_ ^ order_of_blocks, epoch_);
  return order(slot < short_slot_ ? slot : slot - 1);
}

std::int64_t BlockPermutation::operator()(std::int64_t position) const {
  require(position >= 0 && position < size_, "the position {} does not lie in [0, {})", position, size_);
  // All positions as if no block were short: those behind the short block move on by what it lacks.
  const std::int64_t short_group = short_slot_ / blocks_at_once_;
  const std::int64_t group_size = block_ * blocks_at_once_;
  const std::int64_t end_of_short_group = (short_group + 1) * group_size - lacking_;
  const std::int64_t group = (position < end_of_short_group ? position : position + lacking_) / group_size;
  const std::int64_t begin = group * group_size - (group > short_group ? lacking_ : 0);
  const std::int64_t end = std::min(size_, (group + 1) * group_size - (group >= short_group ? lacking_ : 0));
  const auto words = philox(seed_, order_in_group, static_cast<std::uint64_t>(group));  // a seed for each group
  const std::uint64_t seed = (std::uint64_t{words[0]} << 32) | words[1];
  std::int64_t place = Permutation(end - begin, seed, epoch_)(position - begin);
  const std::int64_t slots_before_short = short_slot_ - group * blocks_at_once_;
  if (group == short_group && place >= (slots_before_short + 1) * block_ - lacking_) place += lacking_;
  return block_at(group * blocks_at_once_ + place / block_) * block_ + place % block_;
}

}  // namespace trireme::data
