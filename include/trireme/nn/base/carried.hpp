#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/nn/base/module.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

// A batch with rows that may continue the same rows of the previous step, such as data::TokenBatch.
template <typename Batch>
concept BatchOfRows = requires(const Batch& batch) {
  { batch.rows() } -> std::convertible_to<std::int64_t>;
  { batch.first_row } -> std::convertible_to<std::int64_t>;  // the place of row 0 in the whole batch of the step
  { batch.continues } -> std::convertible_to<bool>;
};

// Values that a layer keeps for each row of the batch until the next step, such as an LSTM's states:
//
//   Carried memory{*this, "memory", {width}};
//   ...
//   const Tensor<float> before = memory.of(batch);  // [rows, width]; zeros if !batch.continues
//   memory.keep(batch, after.value());
//
// The values have no gradient: backpropagation through time is truncated at the beginning of a step. In a step of
// DataParallel, of() returns the values at the end of the previous step, even if a row is computed several times. Checkpoints
// save the values; a step that is aborted or skipped restores them. Each rank holds the values of its own rows, given by
// ModelContext::rows. Outside of steps of DataParallel, and in evaluation, separate values are carried, for any rows;
// checkpoints do not save these values. A StepGraph on a GPU can't use this class, because the graph records only once whether
// rows continue.
template <typename P, typename D = Cpu>
class Carried : public Module<P, D> {
 public:
  using T = typename P::Master;

  // of_row: the shape of one row's values.
  Carried(const Module<P, D>& parent, std::string_view name, const Shape& of_row)
      : Module<P, D>(parent, name), of_row_(of_row) {
    const BatchRows& rows = this->context().rows;
    if (rows.batch_size == 0) return;
    values_ = this->add_buffer("rows", rows_of(rows.own.count()), 0,
                               {.reduction = BufferReduction::none, .in_weights = false, .rows = rows});
  }

  // Returns a copy of the values, [rows, ...].
  template <BatchOfRows Batch>
  Tensor<T, D> of(const Batch& batch) const {
    if (!is_in_step()) return aside_of(batch);
    if (!values_.defined()) {
      require(!batch.continues,
              "{} keeps values of the batch's rows from step to step: set ModelContext::rows, which says which rows these are, "
              "by parallel::model_context(mesh, {{.batch_size = ...}})",
              this->name());
      return Tensor<T, D>::zeros(rows_of(batch.rows()));
    }
    const Tensor<T, D> place = place_of(batch, values_.kept_value());
    // These rows start again, so the kept values become zero in place. Then a skipped step, which restores the kept values,
    // also restores zeros.
    if (!batch.continues) plane_device<D>().zero(place.data(), place.span().size_bytes());
    return place.clone();
  }

  // Keeps values for the next step. values: [rows, ...], or as many elements in the same order.
  template <BatchOfRows Batch>
  void keep(const Batch& batch, const Tensor<T, D>& values) const {
    const Tensor<T, D> rows = values.reshape(rows_of(batch.rows()));
    if (!is_in_step()) {
      keep_aside(batch.first_row, rows.clone());
    } else if (values_.defined()) {
      const Tensor<T, D> place = place_of(batch, values_.value());
      plane_device<D>().copy(place.data(), rows.data(), rows.span().size_bytes());
    }
  }

 private:
  bool is_in_step() const {
    const Tape* tape = Tape::current();
    if (tape == nullptr || !this->training() || !this->store().buffers().are_kept()) return false;
    require(!tape->options() || tape->options()->on_device == nullptr,
            "{} keeps values of the batch's rows, but a StepGraph records only once whether they continue: use steps without a "
            "StepGraph",
            this->name());
    return true;
  }

  Shape rows_of(std::int64_t rows) const {
    std::array<std::int64_t, Shape::max_dims> dims{rows};
    require(of_row_.size() < Shape::max_dims, "{}: a row of shape {} has too many dims", this->name(), of_row_);
    std::ranges::copy(of_row_.dims(), dims.begin() + 1);
    return Shape(std::span(dims).first(static_cast<std::size_t>(of_row_.size()) + 1));
  }

  template <typename Batch>
  Tensor<T, D> place_of(const Batch& batch, const Tensor<T, D>& all) const {
    const Range& own = this->context().rows.own;
    const std::int64_t first = batch.first_row;
    require(first >= own.begin && first <= own.end && batch.rows() <= own.end - first,
            "{}: {} rows from row {} of the batch on are not on this rank, which has rows {} to {}", this->name(), batch.rows(),
            first, own.begin, own.end);
    return all.narrow(first - own.begin, batch.rows());
  }

  template <typename Batch>
  Tensor<T, D> aside_of(const Batch& batch) const {
    if (!batch.continues) return Tensor<T, D>::zeros(rows_of(batch.rows()));
    const auto found = aside_.find(batch.first_row);
    require(found != aside_.end() && found->second.dim(0) == batch.rows(),
            "{}: {} rows from row {} on continue, but no evaluation has computed these rows just before", this->name(),
            batch.rows(), static_cast<std::int64_t>(batch.first_row));
    return found->second.clone();
  }
  void keep_aside(std::int64_t first, const Tensor<T, D>& rows) const {
    std::erase_if(aside_, [&](const auto& other) {  // older values of these rows
      return other.first < first + rows.dim(0) && first < other.first + other.second.dim(0);
    });
    aside_[first] = rows;
  }

  Shape of_row_;
  Buffer<T, D> values_;
  mutable std::map<std::int64_t, Tensor<T, D>> aside_;  // the key is the first row
};

}  // namespace nn
}  // namespace trireme
