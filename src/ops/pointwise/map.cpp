#include "trireme/ops/pointwise/map.hpp"

#include <memory>
#include <vector>

#include "ops/elementwise/elementwise_kernels.hpp"
#include "ops/pointwise/pieces.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

// The operands of map(), in pieces of at most piece_elements.
template <typename T>
class MapOperands {
 public:
  MapOperands(const Broadcast& plan, std::span<const T* const> x) : elements_(x.size()) {
    for (std::size_t k = 0; k < x.size(); ++k) {
      operands_.push_back(std::make_unique<OperandPieces<T>>(plan, static_cast<int>(k), OperandArgument<T>{.data = x[k]}));
    }
  }
  const Accumulate<T>* const* piece(std::int64_t first, std::int64_t count) {
    for (std::size_t k = 0; k < operands_.size(); ++k) elements_[k] = operands_[k]->elements(first, count);
    return elements_.data();
  }

 private:
  std::vector<std::unique_ptr<OperandPieces<T>>> operands_;
  std::vector<const Accumulate<T>*> elements_;
};

}  // namespace

template <typename T>
void run_map(const Broadcast& plan, std::span<const T* const> x, T* y, const void* function, MapForward<Accumulate<T>> loop) {
  parallel_elements(plan.numel, [&](std::int64_t begin, std::int64_t end) {
    MapOperands<T> operands(plan, x);
    for_broadcast_pieces(plan, begin, end, piece_elements, [&](std::int64_t first, std::int64_t count) {
      const auto* from = operands.piece(first, count);
      Output<T> to(y + first, count, false);
      loop(function, from, to.data(), count);
    });
  });
}

template <typename T>
void run_map_backward(const Broadcast& plan, std::span<const T* const> x, const T* dy, std::span<const MapGradient<T>> dx,
                      const void* function, MapBackward<Accumulate<T>> loop) {
  using A = Accumulate<T>;
  const auto& add = elementwise_kernels().of<A>().add;
  parallel_elements(plan.numel, [&](std::int64_t begin, std::int64_t end) {
    MapOperands<T> operands(plan, x);
    std::vector<A> products(dx.size() * piece_elements);
    std::vector<A*> to(dx.size());
    for_broadcast_pieces(plan, begin, end, piece_elements, [&](std::int64_t first, std::int64_t count) {
      const auto* from = operands.piece(first, count);
      const Input<T> upstream(dy + first, count);
      for (std::size_t k = 0; k < dx.size(); ++k) {
        to[k] = products.data() + k * piece_elements;
        if constexpr (!is_half<T>) {
          if (dx[k].data != nullptr && !dx[k].accumulate) to[k] = dx[k].data + first;
        }
      }
      loop(function, from, upstream.data(), to.data(), count);
      for (std::size_t k = 0; k < dx.size(); ++k) {
        if (dx[k].data == nullptr || to[k] == reinterpret_cast<A*>(dx[k].data + first)) continue;
        Output<T> sum(dx[k].data + first, count, dx[k].accumulate);
        if (dx[k].accumulate) {
          add(sum.data(), to[k], sum.data(), count);
        } else {
          std::copy_n(to[k], count, sum.data());
        }
      }
    });
  });
}

TRIREME_INSTANTIATE(FLOATS, run_map)
TRIREME_INSTANTIATE(FLOATS, run_map_backward)

}  // namespace trireme::ops
