#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "trireme/autograd/composed/computed_weight.hpp"
#include "trireme/autograd/composed/gated.hpp"
#include "trireme/autograd/lora_options.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/base/module.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

// How the ranks of a model's tensor axis divide a linear layer (Shoeybi et al. 2019, arXiv 1909.08053). A column-parallel
// layer takes an input that all ranks hold and gives each rank a part of the outputs. A row-parallel layer takes a part of the
// inputs from each rank and gives the sum to all ranks. Without an axis there is no difference.
enum class TensorSplit : std::uint8_t { none, column, row };

// The properties of a linear layer that its adapter uses.
struct LoraLayer {
  // Neighbouring outputs, which the ranks of a column-parallel layer divide evenly.
  struct Outputs {
    std::int64_t count = 0;
    int part = 0;  // outputs of one part share an A
    bool is_target = false;
  };
  std::int64_t in = 0;
  TensorSplit split = TensorSplit::none;
  std::vector<Outputs> outputs = {};

  int num_targets() const {  // parts
    int number = 0, last = -1;
    for (const Outputs& some : outputs) {
      if (some.is_target && some.part != last) ++number, last = some.part;
    }
    return number;
  }
};

// The adapter of a linear layer, see LoraOptions, registered under the layer's own name. Each part of a packed layer that is a
// target has its own A and B. The matrices lie one below the other in lora_A.weight [parts * rank, in] and lora_B.weight
// [outputs, rank], where `outputs` counts the outputs of these parts. In training, all parts read the input with the same
// elements dropped. Ranks divide B if the layer is column-parallel, and A if it is row-parallel; all ranks hold the other
// matrix as a whole.
template <typename P, typename D = Cpu>
class LoraAdapter : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  LoraAdapter(const Module<P, D>& parent, std::string_view layer_name, const LoraOptions& options, const LoraLayer& layer)
      : Module<P, D>(parent, layer_name),
        split_(layer.split),
        in_(layer.in),
        dropout_(options.dropout),
        scale_(options.scale()) {
    require(dropout_ == 0 || !this->sequence_parallel(),
            "{}: in a sequence-parallel model LoRA has no dropout: its dropout must be 0, not {}", this->name(), dropout_);
    Placement of_a{.shape = {layer.num_targets() * options.rank, layer.in}};
    if (split_ == TensorSplit::row) {
      of_a.dim = 1;
      of_a.ranges = {even_part(layer.in, *this->tensor_axis())};
    }
    a = this->add_adapter("lora_A.weight", of_a, Initializer::kaiming_uniform({.slope = std::sqrt(5.0)}));
    b = this->add_adapter("lora_B.weight", placement_of_b(options, layer), Initializer::constant(0));
  }

  // Adds the adapter's output for x to y, the layer's output. y must not be used afterwards.
  Variable<T, D> add_to(const Variable<T, D>& y, const Variable<T, D>& x) const {
    const bool has_own_rows = split_ == TensorSplit::row && this->sequence_parallel();
    return add_low_rank(y, reduced(dropped(x)), has_own_rows ? with_summed_gradient(b) : b.variable(), columns_, scale_);
  }

  Parameter<T, D, M> a;
  Parameter<T, D, M> b;

 private:
  Placement placement_of_b(const LoraOptions& options, const LoraLayer& layer) {
    Placement of_b;
    std::int64_t rows = 0, first_here = 0;
    int last_part = -1;
    for (const LoraLayer::Outputs& some : layer.outputs) {
      const Range here = split_ == TensorSplit::column ? even_part(some.count, *this->tensor_axis()) : Range{0, some.count};
      if (some.is_target) {
        if (some.part != last_part) columns_.push_back({.first = first_here, .count = 0});
        last_part = some.part;
        columns_.back().count += here.count();
        of_b.ranges.push_back({rows + here.begin, rows + here.end});
        rows += some.count;
      }
      first_here += here.count();
    }
    of_b.shape = {rows, options.rank};
    if (split_ == TensorSplit::column) {
      of_b.dim = 0;
    } else {
      of_b.ranges.clear();
    }
    return of_b;
  }

  // x A^T of all parts, side by side, for the rows of y.
  Variable<T, D> reduced(const Variable<T, D>& x) const {
    if (split_ == TensorSplit::none) return linear(x, a.variable());
    const Collectives& axis = *this->tensor_axis();
    if (split_ == TensorSplit::row) {
      if (!this->sequence_parallel()) return row_parallel_linear(x, a.variable(), {}, axis, false);
      return without_filling(sum_parts(filled_up(linear(x, a.variable())), axis, true));
    }
    if (!this->sequence_parallel()) return sum_gradient(linear(x, a.variable()), axis);
    return sum_gradient(without_filling(gather_rows(filled_up(linear(x, with_summed_gradient(a))), axis)), axis);
  }

  // Collectives divide rows at multiples of 16 elements, so this function pads the rows of an adapter with zeros to such a
  // width.
  Variable<T, D> filled_up(const Variable<T, D>& rows) const {
    const std::int64_t width = rows.shape()[rows.shape().size() - 1];
    return width % 16 == 0 ? rows : pad(rows, {0, 16 - width % 16});
  }
  Variable<T, D> without_filling(const Variable<T, D>& rows) const {
    const int last = rows.shape().size() - 1;
    const std::int64_t width = a.variable().shape()[0];
    return rows.shape()[last] == width ? rows : narrow(rows, last, 0, width);
  }

  // A parameter that all ranks hold; each rank uses it for its own rows.
  Variable<T, D, M> with_summed_gradient(const Parameter<T, D, M>& parameter) const {
    return computed_weight<T>(sum_gradient(parameter.master(), *this->tensor_axis()));
  }

  Variable<T, D> dropped(const Variable<T, D>& x) const {
    if (dropout_ == 0 || !this->training() || Tape::current() == nullptr) return x;
    const std::string stream = this->name() + ".lora_dropout";
    if (split_ != TensorSplit::row) return dropout(x, dropout_, stream);
    return dropout_of_part(x, even_part(in_, *this->tensor_axis()), in_, dropout_, stream);
  }

  TensorSplit split_;
  std::int64_t in_;
  double dropout_;
  double scale_;
  std::vector<LowRankColumns> columns_;  // of this rank's y, for each part
};

}  // namespace nn
}  // namespace trireme
