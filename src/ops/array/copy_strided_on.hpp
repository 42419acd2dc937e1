#pragma once

#include <algorithm>
#include <type_traits>

#include "ops/array/arranged_copy.hpp"
#include "ops/base/check.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/array/fill.hpp"
#include "trireme/ops/array/movement.hpp"

// The copies of ops/array for any device: CopyStrided<D> does the work.
namespace trireme::ops {

template <typename D>
struct CopyStrided {
  // Copies the bits of elements of 1, 2, 4 or 8 bytes. x and y point to the first element of the box. Nothing is summed.
  static void move(const ArrangedCopy& copy, int element_bytes, const void* x, void* y);
  // y += x; nothing is summed over.
  template <typename T>
  static void add(const ArrangedCopy& copy, const T* x, T* y);
  // y = sums of x, or += them.
  template <typename T>
  static void sum(const ArrangedCopy& copy, const T* x, T* y, bool accumulate);
};

inline void require_inside(const StridedCopy& box, bool of_y, std::int64_t numel) {
  std::int64_t first = of_y ? box.to : box.from;
  std::int64_t last = first;
  for (const StridedCopy::Dim& dim : std::span(box.dims).first(static_cast<std::size_t>(box.size))) {
    const std::int64_t reach = (dim.extent - 1) * (of_y ? dim.to : dim.from);
    (reach < 0 ? first : last) += reach;
  }
  require(first >= 0 && last < numel, "copy_strided: the box reaches from element {} to {} of {}, which has {}", first, last,
          of_y ? "y" : "x", numel);
}

template <typename T, typename D>
void copy_strided(const StridedCopy& box, const Tensor<T, D>& x, Tensor<T, D>& y, bool accumulate) {
  require_defined("copy_strided", "x", x);
  require_defined("copy_strided", "y", y);
  const ArrangedCopy copy = arrange(box);
  if (copy.kept_count == 0) return;
  require_inside(box, true, y.numel());
  if (copy.summed_count > 0) require_inside(box, false, x.numel());
  require(x.numel() == 0 || x.data() + x.numel() <= y.data() || y.data() + y.numel() <= x.data(),
          "copy_strided: x and y share memory");
  y.count_change();
  const T* from = x.data() + (copy.summed_count > 0 ? copy.from : 0);
  T* to = y.data() + copy.to;
  if (copy.summed_count == 1 && !accumulate) return CopyStrided<D>::move(copy, sizeof(T), from, to);
  if constexpr (std::is_same_v<T, bool>) {
    require(false, "copy_strided: elements of bool can't be added");
  } else if (copy.summed_count == 1) {
    CopyStrided<D>::add(copy, from, to);
  } else {
    CopyStrided<D>::sum(copy, from, to, accumulate);
  }
}

template <typename T, typename D>
void move_elements(const Movement& movement, const Tensor<T, D>& x, Tensor<T, D>& y) {
  require_shape(movement.name, "x", x, movement.from);
  require_shape(movement.name, "y", y, movement.to);
  if (!movement.fills) fill_elements(y, static_cast<T>(static_cast<Accumulate<T>>(movement.rest)));
  for (const StridedCopy& box : movement.copies) copy_strided(box, x, y);
}

template <typename T, typename D>
void move_gradient(const Movement& movement, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  require_shape(movement.name, "dy", dy, movement.to);
  require_shape(movement.name, "dx", dx, movement.from);
  if (!accumulate && movement.whole == 0) fill_elements(dx, T{});
  for (std::size_t i = 0; i < movement.copies.size(); ++i) {
    copy_strided(movement.copies[i].reversed(), dy, dx, accumulate || i >= movement.whole);
  }
}

}  // namespace trireme::ops
