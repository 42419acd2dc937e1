#pragma once

#include <memory>
#include <string>
#include <utility>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/autograd/variable.hpp"

namespace trireme {

namespace detail {

// A parameter's gradient lies in the store: the first contribution of a step overwrites, later ones add.
template <typename T, typename D>
class ParameterSlot final : public TensorSlot<T, D> {
 public:
  ParameterSlot(Tape& tape, FlatStore& store, int index)
      : TensorSlot<T, D>(tape, store.parameter(index).shape), store_(store), index_(index) {}

  void count_use() override { this->tape().use(store_, index_); }
  std::pair<Tensor<T, D>, bool> open() override { return {store_.gradient<T>(index_), store_.has_gradient(index_)}; }
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
  FlatStore& store_;
  int index_;
};

}  // namespace detail

// A named place in a flat store. A value: copies mean the same parameter, which ties layers together.
template <typename T, typename D = Cpu>
class Parameter {
 public:
  Parameter() = default;  // stands for none: a layer without a bias
  Parameter(std::shared_ptr<FlatStore> store, int index) : store_(std::move(store)), index_(index) {}

  bool defined() const { return store_ != nullptr; }
  int index() const { return index_; }
  const ParameterInfo& info() const { return store_->parameter(index_); }

  Tensor<T, D> value() const { return store_->values<T>(index_); }
  Tensor<T, D> gradient() const { return store_->gradient<T>(index_); }

  void freeze() const { store_->freeze(index_); }  // before the first use of any value

  // For operations: on the current tape if there is one. An undefined parameter is an undefined constant.
  Variable<T, D> variable() const {
    if (!defined()) return {};
    Tape* tape = Tape::current();
    if (tape == nullptr || !info().trainable) return Variable<T, D>(value());
    return Variable<T, D>(value(), Gradient<T, D>(std::make_shared<detail::ParameterSlot<T, D>>(*tape, *store_, index_)));
  }

 private:
  std::shared_ptr<FlatStore> store_;
  int index_ = -1;
};

}  // namespace trireme
