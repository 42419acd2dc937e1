#include "trireme/device/graph.hpp"

#include <fmt/format.h>

#include <utility>

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "device/cuda/this_thread.hpp"
#include "device/graph_memory.hpp"

namespace trireme::device {
namespace {

// While it exists, this thread's work is captured into a graph and its memory comes from the graph's.
class Capture {
 public:
  Capture() : memory_(make_graph_memory(this_thread().memory())) {
    check_cuda(cudaStreamBeginCapture(native_stream(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    this_thread().begin_capture(memory_);
  }
  ~Capture() {
    if (open_) ignore_cuda(cudaGraphDestroy(end()));
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Ends the capture. Returns null if CUDA found work that can't be part of a graph.
  cudaGraph_t end() noexcept {
    open_ = false;
    this_thread().end_capture();
    cudaGraph_t graph = nullptr;
    ignore_cuda(cudaStreamEndCapture(native_stream(), &graph));
    return graph;
  }
  const std::shared_ptr<CachingMemory>& memory() const { return memory_; }

 private:
  std::shared_ptr<CachingMemory> memory_;
  bool open_ = true;
};

bool is_invalid(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  ignore_cuda(cudaStreamIsCapturing(stream, &status));
  return status == cudaStreamCaptureStatusInvalidated;
}

// Runs the work to capture. CUDA refuses some calls during a capture, also inside libraries, so any error may mean that.
void record(const std::function<void()>& work) {
  try {
    work();
  } catch (const NotCapturable&) {
    throw;
  } catch (const Error& error) {
    if (!is_invalid(native_stream())) throw;
    throw NotCapturable({.code = ErrorCode::not_available,
                         .message = "CUDA refuses a call while a graph is captured",
                         .had = error.what(),
                         .hint = "do it before or after the work that is recorded"});
  }
}

cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t executable = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
  ignore_cuda(cudaGraphDestroy(graph));
  check_cuda(status, "cudaGraphInstantiate");
  return executable;
}

}  // namespace

struct Graph::Captured {
  std::shared_ptr<CachingMemory> memory;
  cudaGraphExec_t executable = nullptr;

  ~Captured() {
    if (executable != nullptr) ignore_cuda(cudaGraphExecDestroy(executable));
  }
};

Graph::Graph(const std::function<void()>& work) : captured_(std::make_unique<Captured>()) {
  require_not_capturing("recording another graph");
  Capture capture;
  captured_->memory = capture.memory();
  record(work);
  cudaGraph_t graph = capture.end();
  if (graph == nullptr) {
    throw NotCapturable({.code = ErrorCode::not_available,
                         .message = "CUDA found work that can't be part of a graph",
                         .operation = "cudaStreamEndCapture",
                         .hint = "call the function once more before recording it, or leave out work on other streams"});
  }
  captured_->executable = instantiate(graph);
  check_cuda(cudaGraphUpload(captured_->executable, native_stream()), "cudaGraphUpload");
}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

void Graph::launch() const { check_cuda(cudaGraphLaunch(captured_->executable, native_stream()), "cudaGraphLaunch"); }

std::size_t Graph::memory_bytes() const {
  const MemoryStatistics statistics = captured_->memory->statistics();
  return statistics.in_use_bytes + statistics.cached_bytes;
}

bool is_capturing() { return this_thread().is_capturing(); }

void require_not_capturing(std::string_view what) {
  if (!is_capturing()) return;
  throw NotCapturable({.code = ErrorCode::not_available,
                       .message = fmt::format("{} can't be part of a graph", what),
                       .hint = "do it before or after the work that is recorded"});
}

}  // namespace trireme::device
