// Every function of include/trireme/autograd with every way to use its operands.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autograd/function_cases.hpp"
#include "backward_function.hpp"
#include "diary.hpp"
#include "gradient_check.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/parameter.hpp"
#include "trireme/autograd/record.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

// One use that gives its whole gradient at once, and one that writes it.
Variable<double> given(const Variable<double>& x) { return sum(add(x, x)); }
Variable<double> written(const Variable<double>& x) { return sum(multiply(x, x)); }

// A use of every operand before the function and one after it.
Variable<double> between_uses(const FunctionCase& of, const Inputs& in, bool given_first) {
  const auto use = [&](bool give) {
    Variable<double> total;
    for (const Variable<double>& operand : in) {
      const Variable<double> used = give ? given(operand) : written(operand);
      total = total.value().defined() ? add(total, used) : used;
    }
    return total;
  };
  const Variable<double> before = use(given_first);
  const Variable<double> y = of.call(in);
  const Variable<double> weights(random(y.shape(), 30));
  return add(add(before, sum(multiply(y, weights))), use(!given_first));
}

// The operands as parameters of a model.
struct Operands {
  std::shared_ptr<Model> model = std::make_shared<Model>(DType::float64);
  std::vector<Parameter<double>> parameters;

  explicit Operands(const std::vector<Tensor<double>>& values) {
    for (const Tensor<double>& value : values) {
      const std::string name = fmt::format("operand {}", parameters.size());
      parameters.emplace_back(model, model->store().add(name, value.shape(), Initializer::constant(0)));
    }
    for (std::size_t i = 0; i < values.size(); ++i) std::ranges::copy(values[i].span(), parameters[i].value().data());
  }
  Inputs variables() const {
    Inputs variables;
    for (const Parameter<double>& parameter : parameters) variables.push_back(parameter.master());
    return variables;
  }
};

}  // namespace

TEST_CASE("gradients of every function, of one use, between other uses, and of parameters") {
  const testing::GradientCheckOptions options{.tape = {.seed = 3, .step = 2, .first_sample = 4, .samples = 1}};
  for (const FunctionCase& of : function_cases()) {
    CAPTURE(of.name);
    expect_passed(testing::check_gradients(of.call, of.operands, options));
    const Operands operands(of.operands);
    expect_passed(testing::check_parameter_gradients(
        operands.model->store(), [&] { return of.call(operands.variables()); }, options));
    for (const bool given_first : {true, false}) {
      CAPTURE(given_first);
      const auto call = [&](const Inputs& in) { return between_uses(of, in, given_first); };
      expect_passed(testing::check_gradients(call, of.operands, options));
      expect_passed(testing::check_parameter_gradients(
          operands.model->store(), [&] { return call(operands.variables()); }, options));
    }
  }
}

// What an observer sees of a case: the operation of its name, unless the function is made of others.
std::vector<std::string> operations_of(const std::string& name) {
  static const std::map<std::string, std::vector<std::string>> made_of_others{
      {"cast", {}},  // to its own type
      {"add to itself", {"add"}},
      {"dropout twice", {"dropout", "dropout", "add"}},
      {"softmax over dim 0", {"transpose", "softmax", "transpose"}},
      {"log_softmax over dim 0", {"transpose", "log_softmax", "transpose"}},
      {"activation 0", {"gelu_tanh"}},
      {"activation 1", {"gelu_erf"}},
      {"activation 2", {"relu"}},
      {"activation 3", {"silu"}},
      {"activation 4", {"sigmoid"}},
      {"activation 5", {"tanh"}},
      {"lstm", {"recurrent_layer", "sum", "multiply", "sum", "scale", "add", "multiply", "sum", "add"}},
      {"gru", {"recurrent_layer", "sum", "multiply", "sum", "scale", "add"}},
      {"gru of one weight and one bias", {"recurrent_layer", "sum", "multiply", "sum", "scale", "add"}},
      {"layer_norm over two dims", {"reshape", "reshape", "reshape", "layer_norm", "reshape"}},
      {"layer_norm over two dims of a weight that is its bias", {"reshape", "reshape", "reshape", "layer_norm", "reshape"}},
      {"residual_layer_norm", {"residual_layer_norm", "add"}},
      {"residual_layer_norm of a weight that is its bias", {"residual_layer_norm", "add"}},
      {"residual_rms_norm", {"residual_rms_norm", "add"}},
      {"flatten", {"reshape", "transpose", "reshape"}},
      {"flatten of one channel", {"reshape", "reshape"}},
      {"unflatten", {"reshape", "transpose", "reshape"}},
      {"dot", {"matmul"}},
      {"dot of itself", {"matmul"}},
      {"outer", {"reshape", "reshape", "matmul"}},
      {"einsum", {"permute", "reshape", "reshape", "matmul"}},
      {"scatter of less", {"slice", "slice", "scatter", "slice_scatter"}},
      {"add of losses", {"cross_entropy", "cross_entropy", "add"}},
      {"distillation_loss", {"scale", "log_softmax", "kl_divergence", "scale"}}};
  if (const auto found = made_of_others.find(name); found != made_of_others.end()) return found->second;
  return {name.substr(0, std::min(name.find(','), name.find(' ')))};
}

TEST_CASE("an observer sees every function once forward and once backward") {
  for (const FunctionCase& of : function_cases()) {
    CAPTURE(of.name);
    const Tape tape({.seed = 3});
    Inputs inputs;
    for (const Tensor<double>& operand : of.operands) inputs.push_back(watch(operand, [](const Tensor<double>&) {}));
    Diary diary;
    const Observation observation(diary);
    const Variable<double> y = of.call(inputs);
    const std::vector<std::string> operations = diary.names(Pass::forward);
    std::vector<std::string> expected = operations_of(of.name);
    CHECK_THAT(operations, Catch::Matchers::UnorderedEquals(expected));
    y.backward();
    CHECK(diary.open.empty());
    std::map<std::uint64_t, int> seen;  // one, minus one for each backward
    for (const Diary::Entry& entry : diary.entries) {
      if (entry.name != "watch") seen[entry.number] += entry.pass == Pass::forward ? 1 : -1;
    }
    CHECK(seen.size() == expected.size());
    CHECK(std::ranges::all_of(seen, [](const auto& operation) { return operation.second == 0; }));
  }
}

TEST_CASE("an observer sees the functions of other element types too") {
  const Tape tape;
  const auto x = watch(random<float>({16, 16}, 1), [](const Tensor<float>&) {});
  Diary diary;
  const Observation observation(diary);
  sum(float8_linear<Cpu>(cast<bfloat16>(x), random<bfloat16>({16, 16}, 2), {})).backward();
  CHECK(diary.names(Pass::forward) == std::vector<std::string>{"cast", "float8_linear", "sum"});
  CHECK(diary.names(Pass::backward) == std::vector<std::string>{"sum", "float8_linear", "cast", "watch"});
}

TEST_CASE("a gradient of another number of elements is refused") {
  Tape tape;
  const auto x = watch(random({2, 3}, 1), [](const Tensor<double>&) {});
  const auto y = record(tests::BackwardFunction{"wrong", [](const auto& dy, const auto& dx) { dx.give(dy); }},
                        Result<double>{.existing = random({2}, 1)}, x);
  CHECK_THROWS_WITH(sum(y).backward(), "a tensor of shape [2] cannot become [2, 3]");
}
