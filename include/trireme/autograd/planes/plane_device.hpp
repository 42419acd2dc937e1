#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"
#include "trireme/core/state.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/device/device.hpp"
#include "trireme/device/memory.hpp"

namespace trireme TRIREME_EXPORT {

// The device of a store's planes, with the operations that the store needs there. The store does not know element types.
class PlaneDevice {
 public:
  using Plane = std::shared_ptr<device::Storage>;

  virtual ~PlaneDevice() = default;

  virtual std::shared_ptr<device::MemoryResource> memory() const = 0;
  virtual void zero(void* plane, std::size_t bytes) const = 0;
  virtual void fill(void* plane, DType dtype, double value, std::int64_t count) const = 0;  // float32 or float64
  virtual void copy(void* to, const void* from, std::size_t bytes) const = 0;               // between planes
  virtual void copy_if(const bool* condition, void* to, const void* from, std::size_t bytes) const = 0;
  virtual void write(void* plane, const void* on_host, std::size_t bytes) const = 0;
  virtual void read(const void* plane, void* on_host, std::size_t bytes) const = 0;
  // The sum of squares of the elements of `dtype` in a range of a plane; nan if one of these elements is inf or nan.
  virtual double sum_of_squares(const Plane& plane, DType dtype, const Range& range) const = 0;
  // Compute the totals and numbers of a step, which lie on the planes' device; the host does not wait. add_totals() adds known
  // totals. add_squares() adds sum_of_squares() to totals->squares. summarize() computes the numbers for a loss over `count`
  // targets.
  virtual void add_totals(const StepTotals& known, StepTotals* totals) const = 0;
  virtual void add_squares(const Plane& plane, DType dtype, const Range& range, StepTotals* totals) const = 0;
  virtual void summarize(const StepTotals* totals, double count, StepNumbers* numbers) const = 0;
  // sum += plane in a range of both.
  virtual void add(const Plane& sum, const Plane& plane, DType dtype, const Range& range) const = 0;
  // Rounds a range of float values to bfloat16 or float16, into the same range of another plane.
  virtual void round(const Plane& values, const Range& range, DType to, const Plane& rounded) const = 0;

  // Returns where a State finds the elements of a plane: in the plane, or for a GPU in a copy on the host. The copy is
  // refreshed before the state is saved or loaded, and written back after loading.
  virtual void* listed(State& state, void* plane, std::size_t bytes) const = 0;
};

template <typename D>
TRIREME_EXPORT const PlaneDevice& plane_device();
template <>
TRIREME_EXPORT const PlaneDevice& plane_device<Cpu>();
template <>
TRIREME_EXPORT const PlaneDevice& plane_device<Cuda>();  // in builds with CUDA

}  // namespace trireme
