#pragma once

#include <cstddef>
#include <span>

#include "comm/shared/group_control.hpp"

namespace trireme::comm {

// How the ranks of one node reach each other's buffers.
class AddressSpace {
 public:
  virtual ~AddressSpace() = default;

  // The address of this rank's `data` for the world ranks `readers`; segment 0 if one of them can't reach all of it.
  virtual Address publish(void* data, std::size_t bytes, std::span<const int> readers) const = 0;

  // The place, in this rank's memory, of the data that world rank `owner` published as `address`.
  virtual std::byte* reach(Address address, int owner) const = 0;
};

// For ranks that are threads: a pointer is valid for all of them.
class ThreadAddressSpace final : public AddressSpace {
 public:
  Address publish(void* data, std::size_t /*bytes*/, std::span<const int> /*readers*/) const override {
    return {.segment = 1, .offset = reinterpret_cast<std::uintptr_t>(data)};
  }
  std::byte* reach(Address address, int /*owner*/) const override {
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address.offset));
  }
};

}  // namespace trireme::comm
