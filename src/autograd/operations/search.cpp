#include "trireme/autograd/operations/search.hpp"

#include "precision/instantiate.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/search/cumulative.hpp"

namespace trireme {
namespace {

struct ExtremeWithIndex {
  std::string_view name;
  ops::Extreme kind;
  int dim;
  void forward(const auto& x, auto& values, auto& indices) const { ops::find_extremes(kind, x, dim, values, indices); }
  void backward(const auto& dy, const auto& indices, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::take_backward(dim, indices, dy, out, accumulate); });
  }
  void describe(Attributes& to) const { to["dim"] = std::int64_t{dim}; }
};

struct TakeSorted {
  std::string_view name;
  int dim;
  bool descending;
  void forward(const auto& x, auto& values, auto& indices) const { ops::sort(x, dim, descending, values, indices); }
  void backward(const auto& dy, const auto& indices, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::take_backward(dim, indices, dy, out, accumulate); });
  }
  void describe(Attributes& to) const {
    to["dim"] = std::int64_t{dim};
    to["descending"] = std::int64_t{descending};
  }
};

struct Cumsum {
  static constexpr std::string_view name = "cumsum";
  int dim;
  void forward(const auto& x, auto& y) const { ops::cumulate(ops::Cumulative::sum, x, dim, false, y); }
  void backward(const auto& dy, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::cumulate(ops::Cumulative::sum, dy, dim, true, out, accumulate); });
  }
  void describe(Attributes& to) const { to["dim"] = std::int64_t{dim}; }
};

struct Cumprod {
  static constexpr std::string_view name = "cumprod";
  int dim;
  void forward(const auto& x, auto& y) const { ops::cumulate(ops::Cumulative::product, x, dim, false, y); }
  void backward(const auto& dy, const auto& x, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::cumprod_backward(x, dim, dy, out, accumulate); });
  }
  void describe(Attributes& to) const { to["dim"] = std::int64_t{dim}; }
};

// Records an operation that results in values and indices. backward() reads the indices, and the caller gets them too.
template <typename T, typename D, typename O>
Indexed<Variable<T, D>, D> with_indices(O operation, const Variable<T, D>& x, const auto& shape_of_results) {
  Tensor<std::int64_t, D> indices;
  const auto results = [&] {
    const Shape shape = shape_of_results();
    indices = Tensor<std::int64_t, D>(shape);
    return std::tuple(Result<T, D>{shape}, internal(Result<std::int64_t, D>{.existing = indices}));
  };
  Variable<T, D> values = record(std::move(operation), results, x);
  return {std::move(values), std::move(indices)};
}

template <typename T, typename D>
Indexed<Variable<T, D>, D> extreme_with_index(std::string_view name, ops::Extreme kind, const Variable<T, D>& x, int dim,
                                              bool keep_dims) {
  return with_indices(ExtremeWithIndex{name, kind, dim}, x,
                      [&] { return ops::reduced_shape(name, x.shape(), dim, keep_dims); });
}

}  // namespace

template <typename T, typename D>
Indexed<Variable<T, D>, D> max_with_index(const Variable<T, D>& x, int dim, bool keep_dims) {
  return extreme_with_index("max_with_index", ops::Extreme::max, x, dim, keep_dims);
}

template <typename T, typename D>
Indexed<Variable<T, D>, D> min_with_index(const Variable<T, D>& x, int dim, bool keep_dims) {
  return extreme_with_index("min_with_index", ops::Extreme::min, x, dim, keep_dims);
}

template <typename T, typename D>
Indexed<Variable<T, D>, D> sort(const Variable<T, D>& x, int dim, bool descending) {
  return with_indices(TakeSorted{"sort", dim, descending}, x, [&] { return x.shape(); });
}

template <typename T, typename D>
Indexed<Variable<T, D>, D> topk(const Variable<T, D>& x, std::int64_t k, int dim, bool largest) {
  return with_indices(TakeSorted{"topk", dim, largest}, x, [&] { return ops::topk_shape(x.shape(), k, dim); });
}

template <typename T, typename D>
Variable<T, D> cumsum(const Variable<T, D>& x, int dim) {
  return record(Cumsum{dim}, Result<T, D>{x.shape()}, x);
}

template <typename T, typename D>
Variable<T, D> cumprod(const Variable<T, D>& x, int dim) {
  return record(Cumprod{dim}, Result<T, D>{x.shape()}, kept(x));
}

#define TRIREME_OVERLOADS(T, D)                                                             \
  template Indexed<Variable<T, D>, D> max_with_index(const Variable<T, D>&, int, bool);     \
  template Indexed<Variable<T, D>, D> min_with_index(const Variable<T, D>&, int, bool);     \
  template Indexed<Variable<T, D>, D> sort(const Variable<T, D>&, int, bool);               \
  template Indexed<Variable<T, D>, D> topk(const Variable<T, D>&, std::int64_t, int, bool); \
  template Variable<T, D> cumsum(const Variable<T, D>&, int);                               \
  template Variable<T, D> cumprod(const Variable<T, D>&, int);
TRIREME_EACH(FLOATS, TRIREME_OVERLOADS, TRIREME_DEVICE)
#undef TRIREME_OVERLOADS

}  // namespace trireme
