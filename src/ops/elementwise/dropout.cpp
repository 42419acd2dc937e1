#include "ops/elementwise/dropout_kernels.hpp"
#include "ops/elementwise/dropout_on.hpp"
#include "ops/elementwise/floats.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

template <>
template <typename T>
void Dropouts<Cpu>::dropout(const Dropout<T>& all) {
  const auto& kernels = dropout_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(all.count, [&](std::int64_t first, std::int64_t count) {
    DropoutNumbers numbers = all.numbers;
    numbers.first_index += static_cast<std::uint64_t>(first);
    const Input<T> from(all.x + first, count);
    Output<T> to(all.y + first, count, all.accumulate);
    kernels.dropout(from.data(), all.factor, numbers, to.data(), count, all.accumulate);
  });
}

TRIREME_INSTANTIATE(FLOATS, dropout, Cpu)

}  // namespace trireme::ops
