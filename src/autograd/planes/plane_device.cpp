#include "trireme/autograd/planes/plane_device.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/elementwise/cast.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"
#include "trireme/ops/reduce/reduce.hpp"
#include "trireme/ops/update/step.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme {
namespace {

template <typename D>
class PlanesOn final : public PlaneDevice {
 public:
  std::shared_ptr<device::MemoryResource> memory() const override { return device::memory_of<D>(); }

  void zero(void* plane, std::size_t bytes) const override {
    if constexpr (on_host) {
      std::memset(plane, 0, bytes);
    } else {
      const std::byte nothing{};
      device::fill(D{}, plane, &nothing, 1, bytes);
    }
  }
  void fill(void* plane, DType dtype, double value, std::int64_t count) const override {
    const auto fill = [&]<typename T>(T element) {
      if constexpr (on_host) {
        std::fill_n(static_cast<T*>(plane), count, element);
      } else {
        device::fill(D{}, plane, &element, sizeof(T), static_cast<std::size_t>(count));
      }
    };
    dtype == DType::float64 ? fill(value) : fill(static_cast<float>(value));
  }
  void copy(void* to, const void* from, std::size_t bytes) const override { device::copy_bytes(D{}, to, D{}, from, bytes); }
  void copy_if(const bool* condition, void* to, const void* from, std::size_t bytes) const override {
    ops::copy_if<D>(condition, to, from, bytes);
  }
  void write(void* plane, const void* there, std::size_t bytes) const override {
    device::copy_bytes(D{}, plane, Cpu{}, there, bytes);
  }
  void read(const void* plane, void* there, std::size_t bytes) const override {
    device::copy_bytes(Cpu{}, there, D{}, plane, bytes);
  }

  double sum_of_squares(const Plane& plane, DType dtype, const Range& range) const override {
    return squares(plane, dtype, range).item();
  }
  void add_totals(const StepTotals& known, StepTotals* totals) const override {
    ops::add_to_totals(
        ops::StepSums<double, D>{.loss = known.loss_sum, .target_weight = known.target_weight, .squares = known.squares},
        totals);
  }
  void add_squares(const Plane& plane, DType dtype, const Range& range, StepTotals* totals) const override {
    ops::add_to_totals(ops::StepSums<double, D>{.squares = squares(plane, dtype, range)}, totals);
  }
  void summarize(const StepTotals* totals, double count, StepNumbers* numbers) const override {
    ops::summarize_step<D>(totals, count, numbers);
  }
  void add(const Plane& sum, const Plane& plane, DType dtype, const Range& range) const override {
    const auto add = [&]<typename T>(T) {
      const auto begin = static_cast<std::size_t>(range.begin);
      Tensor<T, D> sums({range.count()}, sum, begin);
      ops::add(sums, Tensor<T, D>({range.count()}, plane, begin), sums);
    };
    dtype == DType::float64 ? add(double()) : add(float());
  }

  void round(const Plane& values, const Range& range, DType to, const Plane& rounded) const override {
    const auto begin = static_cast<std::size_t>(range.begin);
    const Tensor<float, D> from({range.count()}, values, begin);
    const auto round_to = [&]<typename T>(T) {
      Tensor<T, D> halves({range.count()}, rounded, begin);
      ops::cast(from, halves);
    };
    to == DType::bfloat16 ? round_to(bfloat16{}) : round_to(float16{});
  }

  void* listed(State& state, void* plane, std::size_t bytes) const override {
    if constexpr (on_host) {
      return plane;
    } else {
      const auto copy = std::make_shared<device::Storage>(device::host_memory(), bytes);
      state.before_use([=, this] { read(plane, copy->data(), bytes); });
      state.after_load([=, this] { write(plane, copy->data(), bytes); });
      return copy->data();
    }
  }

 private:
  static constexpr bool on_host = std::is_same_v<D, Cpu>;

  static Scalar<double, D> squares(const Plane& plane, DType dtype, const Range& range) {
    const auto sum = [&]<typename T>(T) {
      const T* begin = static_cast<const T*>(plane->data()) + range.begin;
      return ops::sum_of_squares(begin, static_cast<std::size_t>(range.count()), D{});
    };
    return dtype == DType::float64 ? sum(double()) : sum(float());
  }
};

}  // namespace

template <>
const PlaneDevice& plane_device<TRIREME_DEVICE>() {
  static const PlanesOn<TRIREME_DEVICE> device;
  return device;
}

}  // namespace trireme
