#pragma once

#include <memory>

#include "comm/base/backend.hpp"
#include "comm/shared/address_space.hpp"

namespace trireme::comm {

// Messages between the ranks of one group.
class Mail {
 public:
  virtual ~Mail() = default;
  virtual void send(const Call& message) = 0;  // copies the data and never waits
  virtual std::unique_ptr<Operation> receive(const Call& message) = 0;
};

// The functions that differ between ranks that are threads and ranks that are processes.
class Platform {
 public:
  virtual ~Platform() = default;
  virtual const AddressSpace& addresses() const = 0;
  // Collective over `parent`.
  virtual std::shared_ptr<Backend> make_group(const std::shared_ptr<Backend>& parent, const Members& members) = 0;
  virtual std::shared_ptr<device::MemoryResource> memory(std::shared_ptr<Backend> group) = 0;
};

}  // namespace trireme::comm
