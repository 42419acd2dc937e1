#include "trireme/autograd/composed/gather_batch.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

#include "precision/instantiate.hpp"
#include "trireme/autograd/record.hpp"

namespace trireme {
namespace {

// Memory for equal parts of all ranks. Collectives divide elements at multiples of 16, so each part is padded to one.
template <typename T, typename D>
Tensor<T, D> parts_of_ranks(std::int64_t count, const Collectives& axis) {
  return Tensor<T, D>::zeros({axis.size(), (count + 15) / 16 * 16});
}
template <typename T, typename D>
void copy_elements(const Tensor<T, D>& from, const Tensor<T, D>& to, std::int64_t count) {
  device::copy_bytes(D{}, to.data(), D{}, from.data(), static_cast<std::size_t>(count) * sizeof(T));
}

struct GatherBatch {
  static constexpr std::string_view name = "gather_batch";
  static constexpr bool repeatable = false;
  Shape shape;  // of x
  const Collectives& axis;

  template <typename T, typename D>
  void forward(const Tensor<T, D>& x, Tensor<T, D>& y) const {
    const Tensor<T, D> parts = parts_of_ranks<T, D>(x.numel(), axis);
    copy_elements(x, parts.narrow(axis.rank(), 1), x.numel());
    axis.all_gather(parts.span(), "rows of a batch").wait_on_stream();
    for (int rank = 0; rank < axis.size(); ++rank) {
      copy_elements(parts.narrow(rank, 1), y.narrow(rank * shape[0], shape[0]), x.numel());
    }
  }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const Gradient<T, D>& dx) const {
    const std::int64_t count = shape.numel();
    const Tensor<T, D> parts = parts_of_ranks<T, D>(count, axis);
    for (int rank = 0; rank < axis.size(); ++rank) {
      copy_elements(dy.narrow(rank * shape[0], shape[0]), parts.narrow(rank, 1), count);
    }
    axis.reduce_scatter(parts.span(), ReduceOp::sum, "gradient of the rows of a batch").wait_on_stream();
    const Tensor<T, D> own(shape);
    copy_elements(parts.narrow(axis.rank(), 1), own, count);
    dx.give(own);
  }
};

}  // namespace

template <typename T, typename D>
Variable<T, D> gather_batch(const Variable<T, D>& x, const Collectives& axis) {
  const auto result = [&] {
    require(x.shape().size() > 0, "gather_batch: x is a scalar, but needs rows");
    std::vector<std::int64_t> dims(x.shape().dims().begin(), x.shape().dims().end());
    dims[0] *= axis.size();
    return Result<T, D>{Shape(dims)};
  };
  return record(GatherBatch{x.shape(), axis}, result, x);
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, gather_batch, TRIREME_DEVICE)

}  // namespace trireme
