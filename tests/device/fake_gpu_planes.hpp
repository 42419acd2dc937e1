#pragma once

#include "trireme/autograd/planes/plane_device.hpp"

namespace trireme::test {

// The planes of a store on a fake GPU. The host runs their operations.
class FakeGpuPlanes : public PlaneDevice {
 public:
  std::shared_ptr<device::MemoryResource> memory() const override;
  void zero(void* plane, std::size_t bytes) const override;
  void fill(void* plane, DType dtype, double value, std::int64_t count) const override;
  void copy(void* to, const void* from, std::size_t bytes) const override;
  void copy_if(const bool* condition, void* to, const void* from, std::size_t bytes) const override;
  void write(void* plane, const void* there, std::size_t bytes) const override;
  void read(const void* plane, void* there, std::size_t bytes) const override;
  double sum_of_squares(const Plane& plane, DType dtype, const Range& range) const override;
  void add_totals(const StepTotals& known, StepTotals* totals) const override;
  void add_squares(const Plane& plane, DType dtype, const Range& range, StepTotals* totals) const override;
  void summarize(const StepTotals* totals, double count, StepNumbers* numbers) const override;
  void add(const Plane& sum, const Plane& plane, DType dtype, const Range& range) const override;
  void round(const Plane& values, const Range& range, DType to, const Plane& rounded) const override;
  void* listed(State& state, void* plane, std::size_t bytes) const override;
};

const PlaneDevice& fake_gpu_planes();

}  // namespace trireme::test
