#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "trireme/autograd/model.hpp"
#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

namespace detail {

// A parameter's gradient lies in the store. The first contribution of a step overwrites the gradient; later contributions are
// added.
template <typename T, typename D>
class ParameterSlot final : public TensorSlot<T, D> {
 public:
  ParameterSlot(Tape& tape, const std::shared_ptr<Model>& model, int index)
      : TensorSlot<T, D>(tape, model->store().parameter(index).shape),
        model_(model),
        store_(model->store()),
        index_(index),
        version_(store_.version(index)) {}

  void count_use() override { this->tape().use(model_, index_); }
  std::string_view parameter() const override { return store_.parameter(index_).name; }
  const void* place() const override { return &store_.parameter(index_); }
  std::pair<Tensor<T, D>, bool> open() override {
    store_.require_open_gradient(index_);
    store_.require_version(index_, version_);
    return {store_.gradient<T, D>(index_), store_.has_gradient(index_)};
  }
  void close(Tensor<T, D>) override {
    store_.set_has_gradient(index_);
    this->tape().contributed(store_, index_);
  }
  void give(Tensor<T, D> contribution) override {
    auto [sum, accumulate] = open();
    ops::scale(contribution, T{1}, sum, accumulate);
    close(std::move(sum));
  }

 private:
  std::shared_ptr<Model> model_;  // keeps the model alive as long as the tape may need the model
  FlatStore& store_;
  int index_;
  std::uint64_t version_;  // of the values that were read
};

}  // namespace detail

// A handle to one parameter of a model's store. Copies refer to the same parameter, which ties layers together. T: the type
// that layers compute with. M: the type of its master value and its gradient.
template <typename T, typename D = Cpu, typename M = T>
class Parameter {
 public:
  Parameter() = default;  // no parameter, as in a layer without a bias
  Parameter(std::shared_ptr<Model> model, int number) : model_(std::move(model)), number_(number) {}

  bool defined() const { return model_ != nullptr; }
  bool is_of(const Model& model) const { return model_.get() == &model; }
  int number() const { return number_; }                   // from FlatStore::add
  int index() const { return store().index_of(number_); }  // in the store; an error if only other ranks hold the parameter
  const ParameterInfo& info() const { return store().parameter(index()); }

  // After writing into the tensor, call store().refresh_compute_copy(), which counts the change.
  Tensor<M, D> value() const { return store().template values<M, D>(index()); }
  Tensor<M, D> gradient() const { return store().template gradient<M, D>(index()); }

  void freeze() const { store().freeze(number_); }  // before the first use of any value

  // The parameter as an operand, recorded on the current tape if there is one. An undefined parameter gives an undefined
  // constant. A parameter that was never initialized, written or loaded is an error, unless it starts as zeros. Use variable()
  // in matrix products. Use master() for norms, embeddings and biases, which stay in float32.
  Variable<T, D, M> variable() const {
    return defined() ? recorded(store().template compute_values<T, D>(index())) : Variable<T, D, M>();
  }
  Variable<M, D> master() const { return defined() ? recorded(value()) : Variable<M, D>(); }

 private:
  template <typename X>
  Variable<X, D, M> recorded(Tensor<X, D> value) const {
    store().require_values(index());
    Tape* tape = Tape::current();
    if (tape == nullptr || !info().trainable) return Variable<X, D, M>(std::move(value));
    const bool has_gradient = Tape::once([this] { return model_->gradients().is_on(info().name); });
    if (!has_gradient) return Variable<X, D, M>(std::move(value));
    return {std::move(value), Gradient<M, D>(std::make_shared<detail::ParameterSlot<M, D>>(*tape, model_, index()))};
  }
  FlatStore& store() const { return model_->store(); }

  std::shared_ptr<Model> model_;
  int number_ = -1;
};

}  // namespace trireme
