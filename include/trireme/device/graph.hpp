#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"

// CUDA graphs: GPU work that is recorded once and launched many times.
namespace trireme TRIREME_EXPORT {
namespace device {

// Thrown for work that can't be part of a graph.
class NotCapturable : public Error {
 public:
  using Error::Error;
};

// A CUDA graph of the work that a function puts into this thread's stream. A launch costs the host only microseconds. Each
// launch uses the same memory with the same arguments; to change inputs, write the new inputs to that memory before the launch.
//
// Call the function a few times before recording, so that plans, workspaces and kernels exist. While the function is recorded,
// the GPU runs nothing, and waiting for the GPU throws NotCapturable. Blocks of cuda_memory() that the function allocates
// belong to the graph as long as the graph or a tensor in these blocks exists. Blocks that the function frees but did not
// allocate must stay unused as long as the graph is launched.
class Graph {
 public:
  explicit Graph(const std::function<void()>& work);
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;

  void launch() const;  // into this thread's stream
  std::size_t memory_bytes() const;

 private:
  struct Captured;
  std::unique_ptr<Captured> captured_;
};

// Whether this thread is recording a graph.
bool is_capturing();

// Throws NotCapturable while this thread records: "waiting for a GPU's stream can't be part of a graph".
void require_not_capturing(std::string_view what);

}  // namespace device
}  // namespace trireme
