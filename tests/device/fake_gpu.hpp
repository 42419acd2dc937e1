#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "trireme/device/memory.hpp"

namespace trireme::test {

// The memory of a fake GPU. Host code that touches it crashes, as with the memory of a real one.
std::shared_ptr<device::MemoryResource> fake_gpu_memory();
bool is_on_fake_gpu(const void* data);

// Where it can be read and written.
std::byte* reach_fake_gpu(const void* data);
template <typename T>
std::span<T> reach_fake_gpu(std::span<T> data) {
  return {reinterpret_cast<T*>(reach_fake_gpu(static_cast<const void*>(data.data()))), data.size()};
}

}  // namespace trireme::test
