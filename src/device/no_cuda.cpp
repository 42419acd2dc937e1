// The GPU functions of a build without CUDA.
#include "trireme/core/error.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/device/graph.hpp"
#include "trireme/device/memory.hpp"
#include "trireme/device/stream.hpp"

namespace trireme::device {
namespace {

[[noreturn]] void throw_not_built() {
  throw Error({.code = ErrorCode::not_available,
               .message = "this build of trireme has no CUDA",
               .hint = "configure with TRIREME_CUDA=ON, where the CUDA Toolkit, cuDNN and NCCL are installed, or use the CPU"});
}

}  // namespace

int cuda_device_count() { return 0; }
void require_cuda() { throw_not_built(); }
void set_cuda_device(int) { throw_not_built(); }
int current_cuda_device() { throw_not_built(); }
CudaDevice cuda_device(int) { throw_not_built(); }

std::shared_ptr<MemoryResource> cuda_memory() { throw_not_built(); }
std::shared_ptr<MemoryResource> pinned_memory() { throw_not_built(); }
MemoryStatistics cuda_memory_statistics() { throw_not_built(); }
void release_cached_cuda_memory() { throw_not_built(); }
void set_cuda_memory_fraction(double) { throw_not_built(); }
void copy_bytes(Cuda, void*, Cpu, const void*, std::size_t) { throw_not_built(); }
void copy_bytes(Cpu, void*, Cuda, const void*, std::size_t) { throw_not_built(); }
void copy_bytes(Cuda, void*, Cuda, const void*, std::size_t) { throw_not_built(); }
void fill(Cuda, void*, const void*, std::size_t, std::size_t) { throw_not_built(); }

Event::Event() { throw_not_built(); }
Event::~Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;
bool Event::is_done() const { throw_not_built(); }
void Event::wait() const { throw_not_built(); }

Stream::Stream() { throw_not_built(); }
Stream::~Stream() = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
void Stream::record(Event&) { throw_not_built(); }
void Stream::order_after(const Event&) { throw_not_built(); }
void Stream::wait() const { throw_not_built(); }
void Stream::copy_from_pinned(void*, const void*, std::size_t) { throw_not_built(); }
void Stream::copy_to_pinned(void*, const void*, std::size_t) { throw_not_built(); }

Stream& current_stream() { throw_not_built(); }

struct Graph::Captured {};
Graph::Graph(const std::function<void()>&) { throw_not_built(); }
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
void Graph::launch() const { throw_not_built(); }
std::size_t Graph::memory_bytes() const { throw_not_built(); }
bool is_capturing() { return false; }
void require_not_capturing(std::string_view) {}

}  // namespace trireme::device
