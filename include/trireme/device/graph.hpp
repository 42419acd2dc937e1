#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"

// Work of a GPU that is recorded once and launched many times.
namespace trireme TRIREME_EXPORT {
namespace device {

// What was to be recorded can't be part of a graph.
class NotCapturable : public Error {
 public:
  using Error::Error;
};

// The work that a function puts into this thread's stream, recorded as one CUDA graph: to launch it costs the host
// microseconds, whatever it holds. Each launch reads and writes the same memory with the same arguments; what changes from
// launch to launch is read from memory that is written before.
//
// Call the function a few times before, so that plans, workspaces and kernels are there. While it is recorded nothing runs, and
// what waits for the GPU throws NotCapturable. What it takes of cuda_memory() meanwhile stays the graph's own as long as the
// graph or a tensor made there lives; blocks that it frees but did not take must stay unused as long as the graph is launched.
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

// Whether the work of this thread is being recorded.
bool is_capturing();

// Throws NotCapturable there: "waiting for a GPU's stream can't be part of a graph".
void require_not_capturing(std::string_view what);

}  // namespace device
}  // namespace trireme
