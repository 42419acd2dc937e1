#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "trireme/data/sources/dataset_sampler.hpp"

namespace trireme::data {

// Which item comes at a position of an epoch: a function of both and of the seed, by arithmetic.
class ItemOrder {
 public:
  virtual ~ItemOrder() = default;
  virtual std::int64_t index(std::int64_t epoch, std::int64_t position) const = 0;
};

// Some of the options were checked by the sampler; those of blocks and mixtures are checked here.
std::shared_ptr<const ItemOrder> make_item_order(std::span<const DatasetPart> parts, const LoaderOptions& options);

}  // namespace trireme::data
