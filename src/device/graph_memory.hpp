#pragma once

#include <memory>

#include "device/caching_memory.hpp"

namespace trireme::device {

// Makes the memory of a graph. It takes blocks from a thread's memory and keeps them as long as it lives or one of them is in
// use, because each launch of the graph writes to them, even to free ones.
std::shared_ptr<CachingMemory> make_graph_memory(std::shared_ptr<CachingMemory> thread_memory);

}  // namespace trireme::device
