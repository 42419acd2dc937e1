#include "device/fake_gpu_planes.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "device/fake_gpu.hpp"

namespace trireme::test {
namespace {

// Memory that somebody else owns.
class Reached final : public device::MemoryResource {
 public:
  explicit Reached(void* block) : block_(block) {}
  std::string_view name() const noexcept override { return "reached"; }

 private:
  void* do_allocate(std::size_t) override { return block_; }
  void do_deallocate(void*, std::size_t) noexcept override {}
  void* block_;
};

template <typename T>
T* reach(T* there) {
  return reinterpret_cast<T*>(reach_fake_gpu(there));
}
PlaneDevice::Plane reach(const PlaneDevice::Plane& plane) {
  return std::make_shared<device::Storage>(std::make_shared<Reached>(reach_fake_gpu(plane->data())), plane->bytes());
}

}  // namespace

std::shared_ptr<device::MemoryResource> FakeGpuPlanes::memory() const { return fake_gpu_memory(); }

void FakeGpuPlanes::zero(void* plane, std::size_t bytes) const { std::memset(reach_fake_gpu(plane), 0, bytes); }

void FakeGpuPlanes::fill(void* plane, DType dtype, double value, std::int64_t count) const {
  plane_device<Cpu>().fill(reach_fake_gpu(plane), dtype, value, count);
}

void FakeGpuPlanes::copy(void* to, const void* from, std::size_t bytes) const {
  if (bytes > 0) std::memcpy(reach_fake_gpu(to), reach_fake_gpu(from), bytes);
}

void FakeGpuPlanes::copy_if(const bool* condition, void* to, const void* from, std::size_t bytes) const {
  if (*reach(condition)) copy(to, from, bytes);
}

void FakeGpuPlanes::write(void* plane, const void* there, std::size_t bytes) const {
  if (bytes > 0) std::memcpy(reach_fake_gpu(plane), there, bytes);
}

void FakeGpuPlanes::read(const void* plane, void* there, std::size_t bytes) const {
  if (bytes > 0) std::memcpy(there, reach_fake_gpu(plane), bytes);
}

double FakeGpuPlanes::sum_of_squares(const Plane& plane, DType dtype, const Range& range) const {
  return plane_device<Cpu>().sum_of_squares(reach(plane), dtype, range);
}

void FakeGpuPlanes::add_totals(const StepTotals& known, StepTotals* totals) const {
  plane_device<Cpu>().add_totals(known, reach(totals));
}

void FakeGpuPlanes::add_squares(const Plane& plane, DType dtype, const Range& range, StepTotals* totals) const {
  plane_device<Cpu>().add_squares(reach(plane), dtype, range, reach(totals));
}

void FakeGpuPlanes::summarize(const StepTotals* totals, double count, StepNumbers* numbers) const {
  plane_device<Cpu>().summarize(reach(totals), count, reach(numbers));
}

void FakeGpuPlanes::add(const Plane& sum, const Plane& plane, DType dtype, const Range& range) const {
  plane_device<Cpu>().add(reach(sum), reach(plane), dtype, range);
}

void FakeGpuPlanes::round(const Plane& values, const Range& range, DType to, const Plane& rounded) const {
  plane_device<Cpu>().round(reach(values), range, to, reach(rounded));
}

// Memory that was not filled holds implausible numbers.
void* FakeGpuPlanes::listed(State& state, void* plane, std::size_t bytes) const {
  const auto copy = std::make_shared<std::vector<std::uint64_t>>(bytes / sizeof(std::uint64_t) + 1, 0xEEEEEEEEEEEEEEEE);
  state.before_use([=, this] { read(plane, copy->data(), bytes); });
  state.after_load([=, this] { write(plane, copy->data(), bytes); });
  return copy->data();
}

const PlaneDevice& fake_gpu_planes() {
  static const FakeGpuPlanes planes;
  return planes;
}

}  // namespace trireme::test
