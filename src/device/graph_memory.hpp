#pragma once

#include <memory>

#include "device/caching_memory.hpp"

namespace trireme::device {

// Takes its blocks from a thread's memory and keeps them as long as it lives or one is in use: the graph for which it is made
// writes them at each launch, whether they are free or not.
std::shared_ptr<CachingMemory> make_graph_memory(std::shared_ptr<CachingMemory> thread_memory);

}  // namespace trireme::device
