#include "trireme/autograd/operations/resize.hpp"

#include "precision/instantiate.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

namespace trireme {
namespace {

struct Interpolate {
  static constexpr std::string_view name = "interpolate";
  ops::Interpolation interpolation;
  void forward(const auto& x, auto& y) const { ops::interpolate(interpolation, x, y); }
  void backward(const auto& dy, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::interpolate_backward(interpolation, dy, out, accumulate); });
  }
  void describe(Attributes& to) const {
    to["size"] = std::vector{interpolation.height.out, interpolation.width.out};
    to["height_scale"] = interpolation.height.scale;
    to["width_scale"] = interpolation.width.scale;
    to["mode"] = interpolation.bilinear ? "bilinear" : "nearest";
    to["align_corners"] = std::int64_t{interpolation.align_corners};
  }
};

}  // namespace

template <typename T, typename D>
Variable<T, D> interpolate(const Variable<T, D>& x, const InterpolateOptions& options) {
  require_operands(Interpolate::name, x);
  const ops::Interpolation interpolation = ops::interpolation_of(x.shape(), options);
  return record(Interpolate{interpolation}, Result<T, D>{ops::interpolated_shape(x.shape(), interpolation)}, x);
}

#define TRIREME_OVERLOADS(T, D) template Variable<T, D> interpolate(const Variable<T, D>&, const InterpolateOptions&);
TRIREME_EACH(FLOATS, TRIREME_OVERLOADS, TRIREME_DEVICE)
#undef TRIREME_OVERLOADS

}  // namespace trireme
