#include "trireme/autograd/operations/index.hpp"

#include "precision/instantiate.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/array/fill.hpp"
#include "trireme/ops/elementwise/cast.hpp"
#include "trireme/ops/pointwise/operators.hpp"

namespace trireme {
namespace {

struct Gather {
  std::string_view name;
  ops::Indexing indexing;
  void forward(const auto& x, const auto& index, auto& y) const { ops::gather(indexing, x, index, y); }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const auto& index, const Gradient<T, D>& dx) const {
    dx.contribute([&](Tensor<T, D>& out, bool accumulate) {
      if (!accumulate) ops::fill_elements(out, T{});
      ops::scatter_add(indexing, dy, index, out);
    });
  }
  void describe(Attributes& to) const {
    to["outer"] = indexing.outer;
    to["rows"] = indexing.rows;
  }
};

struct ScatterAdd {
  std::string_view name;
  ops::Indexing indexing;
  void forward(const auto& x, const auto& index, const auto& source, auto& y) const {
    ops::copy_elements(x, y);
    ops::scatter_add(indexing, source, index, y);
  }
  void backward(const auto& dy, const auto& index, const auto& dx, const auto& dsource) const {
    dsource.contribute([&](auto& out, bool accumulate) { ops::gather(indexing, dy, index, out, accumulate); });
    dx.give(dy);
  }
};

struct Scatter {
  std::string_view name;
  ops::Indexing indexing;
  void forward(const auto& x, const auto& index, const auto& source, auto& y) const {
    ops::copy_elements(x, y);
    ops::scatter(indexing, source, index, y);
  }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const auto& index, const Gradient<T, D>& dx, const Gradient<T, D>& dsource) const {
    Tensor<T, D> of_x = dy.clone();
    Tensor<T, D> of_source(index.shape());
    ops::scatter_backward(indexing, of_x, index, of_source);
    dx.give(std::move(of_x));
    dsource.give(std::move(of_source));
  }
};

// x and the sources that equal the result share its gradient equally.
struct ScatterExtreme {
  static constexpr std::string_view name = "scatter_reduce";
  ScatterReduction reduction;
  ops::Indexing indexing;
  void forward(const auto& x, const auto& index, const auto& source, auto& y) const {
    ops::copy_elements(x, y);
    ops::scatter_extreme(reduction, indexing, source, index, y);
  }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const Tensor<T, D>& x, const Tensor<std::int64_t, D>& index, const Tensor<T, D>& source,
                const Tensor<T, D>& y, const Gradient<T, D>& dx, const Gradient<T, D>& dsource) const {
    using A = Accumulate<T>;
    Tensor<T, D> result(source.shape());
    ops::gather(indexing, y, index, result);
    const Tensor<A, D> of_x = cast<A>(eq(x, y));
    const Tensor<A, D> of_source = cast<A>(eq(source, result));
    Tensor<A, D> count = of_x.clone();
    ops::scatter_add(indexing, of_source, index, count);
    const Tensor<A, D> share = cast<A>(dy) / count;
    Tensor<A, D> share_of_source(source.shape());
    ops::gather(indexing, share, index, share_of_source);
    dsource.give(cast<T>(of_source * share_of_source));
    dx.give(cast<T>(of_x * share));
  }
  void describe(Attributes& to) const { to["reduction"] = std::string(reduction == ScatterReduction::amax ? "amax" : "amin"); }
};

}  // namespace

namespace detail {

template <typename T, typename D>
Variable<T, D> record_gather(const Variable<T, D>& x, const ops::Indexing& indexing, const Tensor<std::int64_t, D>& index,
                             const Shape& result) {
  return record(Gather{indexing.name, indexing}, Result<T, D>{result}, x, kept(index));
}

template <typename T, typename D>
Variable<T, D> record_scatter(const Variable<T, D>& x, const ops::Indexing& indexing, const Tensor<std::int64_t, D>& index,
                              const Variable<T, D>& source) {
  return record(Scatter{indexing.name, indexing}, Result<T, D>{x.shape()}, x, kept(index), source);
}

template <typename T, typename D>
Variable<T, D> record_scatter_add(const Variable<T, D>& x, const ops::Indexing& indexing, const Tensor<std::int64_t, D>& index,
                                  const Variable<T, D>& source) {
  return record(ScatterAdd{indexing.name, indexing}, Result<T, D>{x.shape()}, x, kept(index), source);
}

template <typename T, typename D>
Variable<T, D> record_scatter_extreme(ScatterReduction reduction, const Variable<T, D>& x, const ops::Indexing& indexing,
                                      const Tensor<std::int64_t, D>& index, const Variable<T, D>& source) {
  return record(ScatterExtreme{reduction, indexing}, kept(Result<T, D>{x.shape()}), kept(x), kept(index), kept(source));
}

TRIREME_INSTANTIATE(FLOATS, record_gather, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, record_scatter, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, record_scatter_add, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, record_scatter_extreme, TRIREME_DEVICE)

}  // namespace detail
}  // namespace trireme
