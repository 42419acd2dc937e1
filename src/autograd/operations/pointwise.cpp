#include "trireme/autograd/operations/pointwise.hpp"

#include "precision/instantiate.hpp"
#include "trireme/autograd/record.hpp"

namespace trireme {
namespace {

// Contributes a gradient of the result's shape to an operand that may have been broadcast to it.
template <typename T, typename D>
void contribute_sum(const Tensor<T, D>& gradient, const Gradient<T, D>& dx, double factor = 1) {
  if (!dx.needed()) return;
  if (factor == 1 && dx.slot()->shape() == gradient.shape()) return dx.give(gradient);
  dx.contribute([&](auto& out, bool accumulate) { ops::sum_to_shape(gradient, out, accumulate, factor); });
}

struct PointwiseSum {  // add and subtract: backward needs no operands
  std::string_view name;
  ops::Binary kind;
  void forward(const auto& a, const auto& b, auto& y) const { ops::binary(kind, a, b, y); }
  void backward(const auto& dy, const auto& da, const auto& db) const {
    contribute_sum(dy, da);
    contribute_sum(dy, db, kind == ops::Binary::add ? 1 : -1);
  }
};

struct PointwiseBinary {
  std::string_view name;
  ops::Binary kind;
  void forward(const auto& a, const auto& b, auto& y) const { ops::binary(kind, a, b, y); }
  void backward(const auto& dy, const auto& a, const auto& b, const auto& da, const auto& db) const {
    da.contribute([&](auto& out, bool accumulate) { ops::binary_backward(kind, ops::Side::left, a, b, dy, out, accumulate); });
    db.contribute([&](auto& out, bool accumulate) { ops::binary_backward(kind, ops::Side::right, a, b, dy, out, accumulate); });
  }
};

template <typename A>
struct PointwiseWithNumber {
  std::string_view name;
  ops::Binary kind;
  A number;
  ops::Side side;  // of the number
  void forward(const auto& x, auto& y) const {
    if (side == ops::Side::left) {
      ops::binary(kind, number, x, y);
    } else {
      ops::binary(kind, x, number, y);
    }
  }
  void backward(const auto& dy, const auto& x, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) {
      if (side == ops::Side::left) {
        ops::binary_backward(kind, ops::Side::right, number, x, dy, out, accumulate);
      } else {
        ops::binary_backward(kind, ops::Side::left, x, number, dy, out, accumulate);
      }
    });
  }
  void describe(Attributes& to) const {
    to["number"] = static_cast<double>(number);
    to["number_first"] = std::int64_t{side == ops::Side::left};
  }
};

bool has_slope(ops::Unary kind) {
  return kind != ops::Unary::sign && kind != ops::Unary::floor && kind != ops::Unary::ceil && kind != ops::Unary::round;
}

struct PointwiseUnary {
  std::string_view name;
  ops::Unary kind;
  ops::UnaryNumbers numbers;
  void forward(const auto& x, auto& y) const { ops::unary(kind, numbers, x, y); }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const Tensor<T, D>& x, const Gradient<T, D>& dx) const {
    if (!has_slope(kind)) return dx.give(Tensor<T, D>::zeros(x.shape()));
    dx.contribute([&](auto& out, bool accumulate) { ops::unary_backward(kind, numbers, x, dy, out, accumulate); });
  }
  void describe(Attributes& to) const {
    if (kind == ops::Unary::clamp) {
      to["lowest"] = numbers.first;
      to["highest"] = numbers.second;
    }
    if (kind == ops::Unary::elu) to["alpha"] = numbers.first;
  }
};

// Contributes dy where the mask has chosen the operand of this side.
template <typename T, typename D>
void contribute_where(const Tensor<bool, D>& mask, ops::Side side, const Tensor<T, D>& dy, const Gradient<T, D>& dx) {
  if (!dx.needed()) return;
  Tensor<T, D> chosen(dy.shape());
  if (side == ops::Side::left) {
    ops::where(mask, dy, Accumulate<T>{}, chosen);
  } else {
    ops::where(mask, Accumulate<T>{}, dy, chosen);
  }
  contribute_sum(chosen, dx);
}

struct PointwiseWhere {
  static constexpr std::string_view name = "where";
  void forward(const auto& mask, const auto& a, const auto& b, auto& y) const { ops::where(mask, a, b, y); }
  void backward(const auto& dy, const auto& mask, const auto& da, const auto& db) const {
    contribute_where(mask, ops::Side::left, dy, da);
    contribute_where(mask, ops::Side::right, dy, db);
  }
};

template <typename A>
struct PointwiseWhereNumber {
  static constexpr std::string_view name = "where";
  A number;
  ops::Side side;  // of the number
  void forward(const auto& mask, const auto& x, auto& y) const {
    if (side == ops::Side::left) {
      ops::where(mask, number, x, y);
    } else {
      ops::where(mask, x, number, y);
    }
  }
  void backward(const auto& dy, const auto& mask, const auto& dx) const {
    contribute_where(mask, side == ops::Side::left ? ops::Side::right : ops::Side::left, dy, dx);
  }
  void describe(Attributes& to) const {
    to["number"] = static_cast<double>(number);
    to["number_first"] = std::int64_t{side == ops::Side::left};
  }
};

}  // namespace

template <typename T, typename D>
Variable<T, D> pointwise(ops::Unary kind, const Variable<T, D>& x, const ops::UnaryNumbers& numbers) {
  return record(PointwiseUnary{ops::name_of(kind), kind, numbers}, Result<T, D>{x.shape()}, kept(x));
}

namespace detail {

template <typename T, typename D>
Variable<T, D> binary_of(ops::Binary kind, const Variable<T, D>& a, const Variable<T, D>& b) {
  const std::string_view name = ops::name_of(kind);
  const auto result = [&] { return Result<T, D>{ops::broadcast_shape(name, a.shape(), b.shape())}; };
  if (kind == ops::Binary::add || kind == ops::Binary::subtract) return record(PointwiseSum{name, kind}, result, a, b);
  return record(PointwiseBinary{name, kind}, result, kept(a), kept(b));
}

template <typename T, typename D>
Variable<T, D> binary_with_number(ops::Binary kind, const Variable<T, D>& x, Accumulate<T> number, ops::Side side) {
  return record(PointwiseWithNumber<Accumulate<T>>{ops::name_of(kind), kind, number, side}, Result<T, D>{x.shape()}, kept(x));
}

template <typename T, typename D>
Variable<T, D> where_of(const Tensor<bool, D>& mask, const Variable<T, D>& a, const Variable<T, D>& b) {
  const auto result = [&] {
    return Result<T, D>{ops::broadcast_shape("where", mask.shape(), ops::broadcast_shape("where", a.shape(), b.shape()))};
  };
  return record(PointwiseWhere{}, result, kept(mask), a, b);
}

template <typename T, typename D>
Variable<T, D> where_with_number(const Tensor<bool, D>& mask, const Variable<T, D>& x, Accumulate<T> number, ops::Side side) {
  const auto result = [&] { return Result<T, D>{ops::broadcast_shape("where", mask.shape(), x.shape())}; };
  return record(PointwiseWhereNumber<Accumulate<T>>{number, side}, result, kept(mask), x);
}

}  // namespace detail

#define TRIREME_OVERLOADS(T, D) template Variable<T, D> pointwise(ops::Unary, const Variable<T, D>&, const ops::UnaryNumbers&);
TRIREME_EACH(FLOATS, TRIREME_OVERLOADS, TRIREME_DEVICE)
#undef TRIREME_OVERLOADS
TRIREME_INSTANTIATE(FLOATS, detail::binary_of, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, detail::binary_with_number, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, detail::where_of, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, detail::where_with_number, TRIREME_DEVICE)

}  // namespace trireme
