#include "trireme/autograd/operations/array.hpp"

#include "precision/instantiate.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/array/fill.hpp"
#include "trireme/ops/array/transpose.hpp"

namespace trireme {
namespace {

struct Move {
  std::string_view name;
  ops::Movement movement;
  void forward(const auto& x, auto& y) const { ops::move_elements(movement, x, y); }
  void backward(const auto& dy, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::move_gradient(movement, dy, out, accumulate); });
  }
  void describe(Attributes& to) const {
    for (const auto& [setting, values] : movement.settings) to[std::string(setting)] = values;
    if (!movement.fills) to["value"] = movement.rest;
  }
};

// A slice of dim 0 that shares the elements of x.
struct ShareRows {
  std::string_view name;
  Shape shape;  // of x
  Slice slice;
  int dim;
  void forward(const auto&, auto&) const {}
  void backward(const auto& dy, const auto& dx) const {
    dx.contribute(
        [&](auto& out, bool accumulate) { ops::move_gradient(ops::sliced(name, shape, dim, slice), dy, out, accumulate); });
  }
  void describe(Attributes& to) const {
    to["dim"] = std::vector<std::int64_t>{dim};
    to["slice"] = std::vector<std::int64_t>{slice.begin, slice.end, slice.step};
  }
};

// Replaces a part of x by a source.
struct Replace {
  std::string_view name;
  ops::Movement part;  // the part, as a movement from x to the source
  void forward(const auto& x, const auto& source, auto& y) const {
    ops::copy_elements(x, y);
    ops::replace_part(part, source, y);
  }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const Gradient<T, D>& dx, const Gradient<T, D>& dsource) const {
    dsource.contribute([&](Tensor<T, D>& out, bool accumulate) {
      for (const ops::StridedCopy& box : part.copies) ops::copy_strided(box, dy, out, accumulate);
    });
    Tensor<T, D> of_x = dy.clone();
    ops::replace_part(part, Tensor<T, D>::zeros(part.to), of_x);
    dx.give(std::move(of_x));
  }
  void describe(Attributes& to) const {
    for (const auto& [setting, values] : part.settings) to[std::string(setting)] = values;
  }
};

struct Join {
  std::string_view name;
  ops::Joining joining;
  void forward(const auto& xs, auto& y) const { ops::join(joining, xs, y); }
  void backward(const auto& dy, const auto& dxs) const {
    for (std::size_t i = 0; i < dxs.size(); ++i) {
      dxs[i].contribute(
          [&](auto& out, bool accumulate) { ops::copy_strided(joining.part(i).reversed(), dy, out, accumulate); });
    }
  }
  void describe(Attributes& to) const { to["dim"] = std::int64_t{joining.dim}; }
};

struct TakeTriangle {
  std::string_view name;
  ops::Triangle triangle;
  std::int64_t diagonal;
  void forward(const auto& x, auto& y) const { ops::take_triangle(triangle, x, diagonal, y); }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const Gradient<T, D>& dx) const {
    Tensor<T, D> contribution(dy.shape());
    ops::take_triangle(triangle, dy, diagonal, contribution);
    dx.give(std::move(contribution));
  }
  void describe(Attributes& to) const { to["diagonal"] = diagonal; }
};

struct View {
  std::string_view name;
  void forward(const auto&, auto&) const {}
  void backward(auto& dy, const auto& dx) const { dx.give(std::move(dy)); }
};

struct Transpose {
  static constexpr std::string_view name = "transpose";
  int first;
  int second;
  void forward(const auto& x, auto& y) const { ops::transpose(x, first, second, y); }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const Gradient<T, D>& dx) const {
    const ops::Movement back = ops::transposed(dy.shape(), first, second);
    dx.contribute([&](Tensor<T, D>& out, bool accumulate) { ops::copy_strided(back.copies[0], dy, out, accumulate); });
  }
  void describe(Attributes& to) const { to["dims"] = std::vector<std::int64_t>{first, second}; }
};

}  // namespace

template <typename T, typename D>
Variable<T, D> reshape(const Variable<T, D>& x, const Shape& shape) {
  return record(
      View{"reshape"}, [&] { return Result<T, D>{.existing = x.value().reshape(shape)}; }, x);
}

template <typename T, typename D>
Variable<T, D> transpose(const Variable<T, D>& x, int first, int second) {
  return record(
      Transpose{first, second}, [&] { return Result<T, D>{ops::transposed_shape(x.shape(), first, second)}; }, x);
}

#define TRIREME_OVERLOADS(T, D)                                         \
  template Variable<T, D> reshape(const Variable<T, D>&, const Shape&); \
  template Variable<T, D> transpose(const Variable<T, D>&, int, int);
TRIREME_EACH(FLOATS, TRIREME_OVERLOADS, TRIREME_DEVICE)
#undef TRIREME_OVERLOADS

namespace detail {

template <typename T, typename D>
Variable<T, D> record_movement(const Variable<T, D>& x, ops::Movement movement) {
  const Result<T, D> result{movement.to};
  return record(Move{movement.name, std::move(movement)}, result, x);
}

template <typename T, typename D>
Variable<T, D> record_slice(std::string_view function, const Variable<T, D>& x, int dim, const Slice& slice) {
  const Shape& shape = defined_shape(function, x);
  if (ops::dim_of(function, shape, dim) != 0 || slice.step != 1) {
    return record_movement(x, ops::sliced(function, shape, dim, slice));
  }
  const auto [first, count] = ops::slice_of(function, shape[0], slice);
  if (count == shape[0] && gate.observed()) {  // for an observer, x and a view of all of x would be the same value
    return record_movement(x, ops::sliced(function, shape, dim, slice));
  }
  return record(ShareRows{function, shape, slice, dim}, Result<T, D>{.existing = x.value().narrow(first, count)}, x);
}

template <typename T, typename D>
Variable<T, D> record_replacement(const Variable<T, D>& x, const Variable<T, D>& source, ops::Movement part) {
  ops::require_part(part, source.shape());
  return record(Replace{part.name, std::move(part)}, Result<T, D>{x.shape()}, x, source);
}

template <typename T, typename D>
Variable<T, D> record_joining(const std::vector<Variable<T, D>>& xs, const ops::Joining& joining) {
  return record(Join{joining.name, joining}, Result<T, D>{joining.to}, xs);
}

template <typename T, typename D>
Variable<T, D> record_triangle(ops::Triangle triangle, const Variable<T, D>& x, std::int64_t diagonal) {
  const std::string_view name = triangle == ops::Triangle::upper ? "triu" : "tril";
  return record(
      TakeTriangle{name, triangle, diagonal}, [&] { return Result<T, D>{x.shape()}; }, x);
}

template <typename T, typename D>
Variable<T, D> record_view(std::string_view function, const Variable<T, D>& x, const Shape& shape) {
  return record(View{function}, Result<T, D>{.existing = x.value().reshape(shape)}, x);
}

TRIREME_INSTANTIATE(FLOATS, record_movement, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, record_slice, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, record_replacement, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, record_joining, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, record_triangle, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, record_view, TRIREME_DEVICE)

}  // namespace detail
}  // namespace trireme
