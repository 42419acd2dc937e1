#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "data/sources/item_order.hpp"

namespace trireme::data {

// Takes samples from parts by weights. In each round of round_size samples every part comes equally often, by its weight, and
// in a random order. Each part gives its items in an order of its own, each once before any comes again.
class MixtureOrder : public ItemOrder {
 public:
  static constexpr std::int64_t round_size = 1 << 16;

  // `orders`: of the items of each part; null of an empty one.
  MixtureOrder(std::span<const DatasetPart> parts, std::vector<std::shared_ptr<const ItemOrder>> orders,
               const LoaderOptions& options);

  std::int64_t index(std::int64_t epoch, std::int64_t position) const override;

  static std::uint64_t seed_of_part(std::uint64_t seed, std::size_t part);

 private:
  struct Phase {  // samples with the same weights
    std::int64_t first_sample = 0;
    std::vector<std::int64_t> counts = {};  // of each part, in a round
    std::vector<std::int64_t> before = {};  // samples of each part in the phases before
  };
  struct Round {
    std::size_t phase = 0;
    std::int64_t number = -1;
    std::vector<std::uint32_t> parts = {};   // of each sample in the round
    std::vector<std::uint32_t> places = {};  // among the samples of its part in this round
  };

  Round make_round(std::size_t phase, std::int64_t number) const;
  std::shared_ptr<const Round> round_of(std::size_t phase, std::int64_t number) const;

  std::vector<DatasetPart> parts_;
  std::vector<std::int64_t> first_items_;  // of each part, in the joined dataset
  std::vector<std::shared_ptr<const ItemOrder>> orders_;
  std::vector<Phase> phases_;
  std::int64_t size_ = 0;
  std::uint64_t seed_;
  mutable std::mutex mutex_;
  mutable std::array<std::shared_ptr<const Round>, 4> remembered_;
};

}  // namespace trireme::data
