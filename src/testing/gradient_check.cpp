#include "trireme/testing/gradient_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/philox.hpp"

namespace trireme::testing {
namespace {

// sum(upstream * y) with a fixed random upstream gradient.
Variable<double> weighted_sum(const Variable<double>& y, std::uint64_t seed) {
  Tensor<double> upstream(y.shape());
  for (std::int64_t index = 0; index < upstream.numel(); ++index) {
    upstream.data()[index] = philox_normal(seed, hash_name("upstream"), static_cast<std::uint64_t>(index));
  }
  return sum(multiply(y, Variable<double>(upstream)));
}

class Comparison {
 public:
  explicit Comparison(const GradientCheckOptions& options) : options_(options) {}

  // Compares one tensor's gradient; `evaluate` computes the weighted sum from the current values.
  void compare(const std::string& name, Tensor<double> values, const Tensor<double>& gradient,
               const std::function<double()>& evaluate) {
    for (std::int64_t index = 0; index < values.numel(); ++index) {
      double& value = values.data()[index];
      const double original = value;
      value = original + options_.step;
      const double above = evaluate();
      value = original - options_.step;
      const double below = evaluate();
      value = original;
      const double difference = (above - below) / (2 * options_.step);
      const double got = gradient.defined() ? gradient.data()[index] : 0;
      const double error = std::abs(got - difference) / std::max(1.0, std::abs(difference));
      if (error > result_.largest_error || std::isnan(error)) {
        result_.largest_error = error;
        result_.where = fmt::format("{}, element {}: tape {}, difference {}", name, index, got, difference);
      }
    }
  }

  GradientCheck result() {
    result_.passed = result_.largest_error <= options_.tolerance;
    return result_;
  }

 private:
  GradientCheckOptions options_;
  GradientCheck result_;
};

}  // namespace

GradientCheck check_gradients(const CheckedFunction& function, const std::vector<Tensor<double>>& inputs,
                              const GradientCheckOptions& options) {
  std::vector<Tensor<double>> values;
  for (const auto& input : inputs) values.push_back(input.clone());
  std::vector<Tensor<double>> gradients(values.size());
  {
    Tape tape(options.tape.restarted());
    std::vector<Variable<double>> variables;
    for (std::size_t index = 0; index < values.size(); ++index) {
      variables.push_back(
          watch(values[index], [&gradients, index](const Tensor<double>& dy) { gradients[index] = dy.clone(); }));
    }
    weighted_sum(function(variables), options.seed).backward();
  }
  Comparison comparison(options);
  for (std::size_t index = 0; index < values.size(); ++index) {
    comparison.compare(fmt::format("input {}", index), values[index], gradients[index], [&] {
      Tape tape(options.tape.restarted());
      return weighted_sum(function({values.begin(), values.end()}), options.seed).value().item();
    });
  }
  return comparison.result();
}

GradientCheck check_parameter_gradients(FlatStore& store, const std::function<Variable<double>()>& function,
                                        const GradientCheckOptions& options) {
  store.clear_gradients();
  {
    Tape tape(options.tape.restarted());
    weighted_sum(function(), options.seed).backward();
  }
  Comparison comparison(options);
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    if (!parameter.trainable) continue;
    const Tensor<double> gradient = store.has_gradient(index) ? store.gradient<double>(index).clone() : Tensor<double>();
    comparison.compare(parameter.name, store.values<double>(index), gradient, [&] {
      Tape tape(options.tape.restarted());  // dropout takes its random numbers from the tape
      return weighted_sum(function(), options.seed).value().item();
    });
  }
  store.clear_gradients();
  return comparison.result();
}

}  // namespace trireme::testing
