#pragma once

#include <cstddef>

namespace trireme::comm {

// memcpy into memory that another core reads next. Large copies bypass this core's caches: they neither read the target first
// nor evict other data.
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace trireme::comm
