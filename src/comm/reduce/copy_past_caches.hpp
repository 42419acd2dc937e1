#pragma once

#include <cstddef>

namespace trireme::comm {

// memcpy into memory that another core reads next: large copies are not read first and evict nothing from this core's caches.
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace trireme::comm
