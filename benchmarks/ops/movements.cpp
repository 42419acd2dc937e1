#include <cstring>
#include <type_traits>

#include "ops/measure.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/ops/array/array.hpp"

using namespace trireme;

namespace {

// Times movements that copy, beside a memcpy of the elements.
template <typename T>
void measure_movement(Report& report, std::string name, const ops::Movement& movement) {
  if (!std::is_same_v<T, float>) name += " bfloat16";
  const auto x = Tensor<T>::zeros(movement.from);
  auto y = Tensor<T>::zeros(movement.to);
  const auto copied = Tensor<T>::zeros(movement.to);
  const auto bytes = static_cast<std::size_t>(y.numel()) * sizeof(T);
  const auto move = [&] { ops::move_elements(movement, x, y); };
  report.memory_bound(name, 2.0 * static_cast<double>(bytes), move);
  report.ratio(name + " / memcpy", move, [&] { std::memcpy(copied.data(), y.data(), bytes); });
}

void measure_cat(Report& report, const Shape& first, const Shape& second) {
  const std::vector<Tensor<float>> xs{Tensor<float>::zeros(first), Tensor<float>::zeros(second)};
  const ops::Joining joining = ops::joined({first, second}, 1);
  auto y = Tensor<float>::zeros(joining.to);
  const auto copied = Tensor<float>::zeros(joining.to);
  const auto bytes = static_cast<std::size_t>(y.numel()) * sizeof(float);
  const std::string name = "cat " + first.str() + " and " + second.str() + " along dim 1";
  const auto join = [&] { ops::join(joining, xs, y); };
  report.memory_bound(name, 2.0 * static_cast<double>(bytes), join);
  report.ratio(name + " / memcpy", join, [&] { std::memcpy(copied.data(), y.data(), bytes); });
}

template <typename T>
void measure_movements_of(Report& report) {
  measure_movement<T>(report, "permute 0, 2, 1, 3 of [8, 128, 12, 64]", ops::permuted({8, 128, 12, 64}, {0, 2, 1, 3}));
  measure_movement<T>(report, "permute 0, 3, 1, 2 of [64, 32, 32, 64]", ops::permuted({64, 32, 32, 64}, {0, 3, 1, 2}));
  measure_movement<T>(report, "permute 1, 0 of [1024, 1024]", ops::permuted({1024, 1024}, {1, 0}));
}

}  // namespace

// Heads before time, as in attention of other libraries; channels before pixels; joined rows.
void measure_movements(Report& report) {
  measure_movements_of<float>(report);
  measure_movements_of<bfloat16>(report);
  measure_movement<float>(report, "flip the last dim of [1024, 1024]", ops::flipped({1024, 1024}, {1}));
  measure_movement<float>(report, "expand [1024] to [1024, 1024]", ops::expanded({1024}, {1024, 1024}));
  measure_cat(report, {64, 100, 64}, {64, 30, 64});
}
