// Functions over a dim and functions of two operands against PyTorch, for every kind of shape, use and type.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "trireme/autograd/composed/gated.hpp"
#include "trireme/autograd/composed/operators.hpp"
#include "trireme/autograd/model.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/index.hpp"
#include "trireme/autograd/operations/map.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/operations/search.hpp"
#include "trireme/autograd/parameter.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

template <typename T>
using Operands = std::vector<Variable<T>>;
template <typename T>
using Call = std::function<Variable<T>(const Operands<T>&, int dim)>;
using Calls = std::tuple<Call<double>, Call<float>, Call<bfloat16>, Call<float16>>;

// As tests/reference/generator/functions.py makes them.
Tensor<std::int64_t> indices(const Shape& shape, std::int64_t below) {
  Tensor<std::int64_t> index(shape);
  for (std::int64_t i = 0; i < index.numel(); ++i) index.data()[i] = (i * 3 + 1) % std::max<std::int64_t>(below, 1);
  return index;
}
Tensor<std::int64_t> index_like(const Shape& shape, int dim) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  for (std::int64_t& extent : dims) extent = std::min<std::int64_t>(extent, 2);
  return indices(Shape(dims), shape[dim]);
}
template <typename T>
Tensor<T> gradient_of(const Shape& shape) {
  Tensor<T> gradient(shape);
  for (std::int64_t i = 0; i < gradient.numel(); ++i) {
    gradient.data()[i] = static_cast<T>(static_cast<float>((i * 7) % 11 - 5) / 4);
  }
  return gradient;
}

// The amounts of pad(), which begin with the last dim.
std::vector<std::int64_t> amounts_of(int dim, std::int64_t before, std::int64_t after) {
  std::vector<std::int64_t> amounts(static_cast<std::size_t>(2 * (2 - dim)), 0);
  amounts.insert(amounts.end(), {before, after});
  return amounts;
}

std::map<std::string, Calls> functions_over_a_dim() {
  std::map<std::string, Calls> functions;
  const auto add = [&](const std::string& name, const auto& function) {
    const auto call = [function](const auto& in, int dim) { return function(in[0], dim); };
    functions.emplace(name, Calls(call, call, call, call));
  };
  add("sum", [](const auto& x, int dim) { return sum(x, dim); });
  add("sum_kept", [](const auto& x, int dim) { return sum(x, dim, true); });
  add("mean", [](const auto& x, int dim) { return mean(x, dim); });
  add("prod", [](const auto& x, int dim) { return prod(x, dim); });
  add("max", [](const auto& x, int dim) { return max(x, dim); });
  add("min", [](const auto& x, int dim) { return min(x, dim - 3); });
  add("logsumexp", [](const auto& x, int dim) { return logsumexp(x, dim); });
  add("var", [](const auto& x, int dim) { return var(x, dim, false, 0); });
  add("stddev", [](const auto& x, int dim) { return stddev(x, dim, true, 0); });
  add("norm_1", [](const auto& x, int dim) { return norm(x, 1, dim); });
  add("norm_2", [](const auto& x, int dim) { return norm(x, 2, dim); });
  add("norm_inf", [](const auto& x, int dim) { return norm(x, std::numeric_limits<double>::infinity(), dim); });
  add("max_with_index", [](const auto& x, int dim) { return max_with_index(x, dim).values; });
  add("min_with_index", [](const auto& x, int dim) { return min_with_index(x, dim - 3, true).values; });
  add("softmax", [](const auto& x, int dim) { return softmax(x, dim); });
  add("log_softmax", [](const auto& x, int dim) { return log_softmax(x, dim); });
  add("cumsum", [](const auto& x, int dim) { return cumsum(x, dim); });
  add("cumprod", [](const auto& x, int dim) { return cumprod(x, dim - 3); });
  add("sort", [](const auto& x, int dim) { return sort(x, dim).values; });
  add("sort_descending", [](const auto& x, int dim) { return sort(x, dim, true).values; });
  add("topk", [](const auto& x, int dim) { return topk(x, std::min<std::int64_t>(2, x.shape()[dim]), dim).values; });
  add("flip", [](const auto& x, int dim) { return flip(x, {dim}); });
  add("roll", [](const auto& x, int dim) { return roll(x, 2, dim); });
  add("slice", [](const auto& x, int dim) { return slice(x, dim, 1, Slice::to_end, 2); });
  add("narrow", [](const auto& x, int dim) { return narrow(x, dim, x.shape()[dim] / 2, (x.shape()[dim] + 1) / 2); });
  add("split", [](const auto& x, int dim) { return split(x, 2, dim).back(); });
  add("chunk", [](const auto& x, int dim) { return chunk(x, 3, dim).front(); });
  add("repeat", [](const auto& x, int dim) {
    std::vector<std::int64_t> times(3, 1);
    times[static_cast<std::size_t>(dim)] = 3;
    return repeat(x, times);
  });
  add("expand", [](const auto& x, int dim) {
    std::vector<std::int64_t> dims(x.shape().dims().begin(), x.shape().dims().end());
    dims.insert(dims.begin() + dim, 3);
    return expand(unsqueeze(x, dim), Shape(dims));
  });
  add("pad", [](const auto& x, int dim) { return pad(x, amounts_of(dim, 2, 1)); });
  add("pad_reflect", [](const auto& x, int dim) { return pad(x, amounts_of(dim, 1, 1), {.mode = PadMode::reflect}); });
  add("pad_replicate", [](const auto& x, int dim) { return pad(x, amounts_of(dim, 2, 1), {.mode = PadMode::replicate}); });
  add("cat", [](const auto& x, int dim) { return cat({x, -x, x}, dim); });
  add("stack", [](const auto& x, int dim) { return stack({x, x}, dim); });
  add("transpose", [](const auto& x, int dim) { return transpose(x, dim, -1); });
  add("permute", [](const auto& x, int dim) { return permute(x, {(dim + 1) % 3, (dim + 2) % 3, dim}); });
  add("flatten", [](const auto& x, int dim) { return flatten(x, dim); });
  add("squeeze", [](const auto& x, int dim) { return squeeze(x, dim); });
  add("unsqueeze", [](const auto& x, int dim) { return unsqueeze(x, dim); });
  add("gather", [](const auto& x, int dim) { return gather(x, dim, index_like(x.shape(), dim)); });
  add("scatter_add", [](const auto& x, int dim) {
    const auto source = narrow(x, dim, 0, std::min<std::int64_t>(2, x.shape()[dim]));
    return scatter_add(x, dim, indices(source.shape(), x.shape()[dim]), source);
  });
  add("scatter_add_less", [](const auto& x, int dim) { return scatter_add(x, dim, index_like(x.shape(), dim), x); });
  add("scatter_amax",
      [](const auto& x, int dim) { return scatter_reduce(x, dim, index_like(x.shape(), dim), x, ScatterReduction::amax); });
  add("scatter_amin", [](const auto& x, int dim) {
    const Shape shape = ops::with_extent(x.shape(), dim, std::min<std::int64_t>(2, x.shape()[dim]));
    return scatter_reduce(x, dim, indices(shape, x.shape()[dim]), x, ScatterReduction::amin);
  });
  add("slice_scatter",
      [](const auto& x, int dim) { return slice_scatter(x, narrow(x, dim, 0, x.shape()[dim] / 2), dim, 1, Slice::to_end, 2); });
  add("index_select", [](const auto& x, int dim) { return index_select(x, dim, indices({4}, x.shape()[dim])); });
  add("index_add", [](const auto& x, int dim) { return index_add(x, dim, indices({x.shape()[dim]}, x.shape()[dim]), x); });
  add("glu", [](const auto& x, int dim) { return glu(x, dim); });
  add("triu", [](const auto& x, int dim) { return triu(transpose(x, dim, -1)); });
  add("tril", [](const auto& x, int dim) { return tril(transpose(x, dim, -1), 1); });
  return functions;
}

std::map<std::string, Calls> functions_of_two() {
  std::map<std::string, Calls> functions;
  const auto add_function = [&](const std::string& name, const auto& function) {
    const auto call = [function](const auto& in, int) { return function(in[0], in[1]); };
    functions.emplace(name, Calls(call, call, call, call));
  };
  add_function("add", [](const auto& a, const auto& b) { return a + b; });
  add_function("subtract", [](const auto& a, const auto& b) { return a - b; });
  add_function("multiply", [](const auto& a, const auto& b) { return a * b; });
  add_function("divide", [](const auto& a, const auto& b) { return a / b; });
  add_function("minimum", [](const auto& a, const auto& b) { return minimum(a, b); });
  add_function("maximum", [](const auto& a, const auto& b) { return maximum(a, b); });
  add_function("pow", [](const auto& a, const auto& b) { return pow(abs(a), b); });
  add_function("where", [](const auto& a, const auto& b) { return where(a > 0, a, b); });
  add_function("map", [](const auto& a, const auto& b) { return map([](auto x, auto y) { return x * sigmoid(y); }, a, b); });
  return functions;
}

// A function for one kind of shape, and PyTorch's result, which is undefined where PyTorch refuses.
struct Case {
  std::string name;
  int dim = 0;
  std::vector<Tensor<double>> operands = {};
  Tensor<double> out = {};
  std::vector<Tensor<double>> gradients = {};
};

// Tensors that are stored one after the other in one tensor of a file.
class Reader {
 public:
  Reader(const SafetensorsFile& file, const std::string& name) : elements_(read_floats(file, name)) {}
  Tensor<double> next(const Shape& shape) {
    Tensor<double> tensor(shape);
    for (double& element : tensor.span()) element = elements_.at(at_++);
    return tensor;
  }

 private:
  std::vector<float> elements_;
  std::size_t at_ = 0;
};

std::vector<Case> cases_of(const std::string& id, const std::vector<std::string>& operand_names) {
  const std::vector<Fixture> fixtures = fixtures_of_kind("functions");
  const auto all = std::ranges::find(fixtures, id, &Fixture::id);
  if (all == fixtures.end()) {
    list_skipped(id, "this set of reference results has none");
    return {};
  }
  const SafetensorsFile file = all->tensors();
  const nlohmann::json& hyper = all->index.at("hyper");
  std::vector<Case> cases;
  for (const std::string function : hyper.at("functions")) {
    std::vector<Reader> operands;
    std::vector<Reader> gradients;
    for (const std::string& operand : operand_names) {
      operands.emplace_back(file, operand);
      gradients.emplace_back(file, function + ".grad_" + operand);
    }
    Reader out(file, function + ".out");
    const std::vector<std::int64_t> shapes = read_integers(file, function + ".shapes");
    for (std::size_t number = 0; number < hyper.at("cases").size(); ++number) {
      const nlohmann::json& given = hyper.at("cases")[number];
      Case& one = cases.emplace_back(Case{.name = function, .dim = given.value("dim", 0)});
      for (std::size_t place = 0; place < operands.size(); ++place) {
        one.operands.push_back(operands[place].next(Shape(given.at("shapes")[place].get<std::vector<std::int64_t>>())));
      }
      const auto shape = shapes.begin() + static_cast<std::ptrdiff_t>(number * 5);
      if (*shape < 0) continue;
      one.out = out.next(Shape(std::vector(shape + 1, shape + 1 + *shape)));
      for (std::size_t place = 0; place < operands.size(); ++place) {
        one.gradients.push_back(gradients[place].next(one.operands[place].shape()));
      }
    }
  }
  return cases;
}

std::string text_of(const Case& of) {
  std::string text = fmt::format("{} over dim {} of", of.name, of.dim);
  for (const Tensor<double>& operand : of.operands) text += fmt::format(" {}", operand.shape());
  return text;
}

// An undefined tensor counts as 0: a gradient without contributions.
template <typename T>
void expect_close(const std::string& what, const Tensor<T>& got, const Tensor<double>& expected, double factor = 1) {
  constexpr double epsilon = std::is_same_v<T, double>     ? 1e-7
                             : std::is_same_v<T, float>    ? 1e-6
                             : std::is_same_v<T, bfloat16> ? 1.0 / 256
                                                           : 1.0 / 2048;
  if (got.defined() && got.shape() != expected.shape()) {
    FAIL_CHECK(fmt::format("{} has shape {}, expected {}", what, got.shape(), expected.shape()));
    return;
  }
  double largest = 0;
  for (const double element : expected.span())
    largest = std::isfinite(element) ? std::max(largest, std::abs(element)) : largest;
  for (std::int64_t i = 0; i < expected.numel(); ++i) {
    const double wanted = factor * expected.data()[i];
    const double element = got.defined() ? static_cast<double>(static_cast<Accumulate<T>>(got.data()[i])) : 0;
    const bool same = std::isfinite(wanted) ? std::abs(element - wanted) <= 8 * epsilon * std::abs(factor) * largest + 1e-12
                      : std::isnan(wanted)  ? std::isnan(element)
                                            : element == wanted;
    if (!same) {
      FAIL_CHECK(fmt::format("{}, element {}: {}, expected {}", what, i, element, wanted));
      return;
    }
  }
}

template <typename T>
Tensor<T> cast_of(const Tensor<double>& x) {
  Tensor<T> result(x.shape());
  for (std::int64_t i = 0; i < x.numel(); ++i) result.data()[i] = static_cast<T>(static_cast<Accumulate<T>>(x.data()[i]));
  return result;
}

// The operands as constants, or such that their gradients are kept.
template <typename T>
struct Watched {
  std::vector<Tensor<T>> gradients;
  Operands<T> operands;

  Watched(const Case& of, std::size_t frozen) : gradients(of.operands.size()) {
    for (std::size_t place = 0; place < of.operands.size(); ++place) {
      const Tensor<T> value = cast_of<T>(of.operands[place]);
      operands.push_back(place == frozen ? Variable<T>(value) : watch(value, [this, place](const Tensor<T>& gradient) {
        gradients[place] = gradient.clone();
      }));
    }
  }
  void expect_gradients(const Case& of, std::size_t frozen, double factor) const {
    for (std::size_t place = 0; place < gradients.size(); ++place) {
      if (place == frozen) {
        CHECK(!gradients[place].defined());
      } else {
        expect_close(fmt::format("gradient {}", place), gradients[place], of.gradients[place], factor);
      }
    }
  }
};

constexpr std::size_t none = 100;

template <typename T>
void check_type(const Case& of, const Call<T>& call) {
  CAPTURE(name_of(dtype_of<T>));
  const Tape tape;
  Watched<T> watched(of, none);
  const Variable<T> y = call(watched.operands, of.dim);
  expect_close("the result", y.value(), of.out);
  y.backward(gradient_of<T>(y.shape()));
  watched.expect_gradients(of, none, 1);
}

void check_two_uses(const Case& of, const Call<double>& call) {
  const Tape tape;
  Watched<double> watched(of, none);
  const Variable<double> y = call(watched.operands, of.dim) * 3 - call(watched.operands, of.dim);
  y.backward(gradient_of<double>(y.shape()));
  watched.expect_gradients(of, none, 2);
}

// With one operand frozen, the other operands, or without others a summand, still get their gradients.
void check_frozen(const Case& of, const Call<double>& call) {
  for (std::size_t frozen = 0; frozen < of.operands.size(); ++frozen) {
    CAPTURE(frozen);
    const Tape tape;
    Watched<double> watched(of, frozen);
    Tensor<double> of_summand;
    const auto summand = watch(Tensor<double>(of.out.shape()), [&](const Tensor<double>& gradient) { of_summand = gradient; });
    const Variable<double> y = call(watched.operands, of.dim) + summand;
    y.backward(gradient_of<double>(y.shape()));
    watched.expect_gradients(of, frozen, 1);
    expect_close("of the summand", of_summand, gradient_of<double>(y.shape()));
  }
}

void check_parameters(const Case& of, const Call<double>& call) {
  if (std::ranges::any_of(of.operands, [](const auto& operand) { return operand.numel() == 0; })) return;
  const auto model = std::make_shared<Model>(DType::float64);
  std::vector<Parameter<double>> parameters;
  for (const Tensor<double>& operand : of.operands) {
    const std::string name = fmt::format("operand {}", parameters.size());
    parameters.emplace_back(model, model->store().add(name, operand.shape(), Initializer::constant(0)));
  }
  for (std::size_t place = 0; place < parameters.size(); ++place) {
    std::ranges::copy(of.operands[place].span(), parameters[place].value().data());
  }
  model->store().clear_gradients();
  {
    const Tape tape;
    Operands<double> variables;
    for (const Parameter<double>& parameter : parameters) variables.push_back(parameter.master());
    const Variable<double> y = call(variables, of.dim);
    y.backward(gradient_of<double>(y.shape()));
  }
  for (std::size_t place = 0; place < parameters.size(); ++place) {
    const int number = static_cast<int>(place);
    const auto gradient =
        model->store().has_gradient(number) ? model->store().gradient<double>(number).clone() : Tensor<double>();
    expect_close(fmt::format("gradient {}", place), gradient, of.gradients[place]);
  }
}

void check_all(const std::vector<Case>& cases, const std::map<std::string, Calls>& functions) {
  for (const Case& of : cases) {
    INFO(text_of(of));
    REQUIRE(functions.contains(of.name));
    const Calls& calls = functions.at(of.name);
    const auto& call = std::get<Call<double>>(calls);
    if (!of.out.defined()) {
      CHECK_THROWS_AS(call({of.operands.begin(), of.operands.end()}, of.dim), Error);
      continue;
    }
    try {
      std::apply([&](const auto&... each) { (check_type(of, each), ...); }, calls);
      check_two_uses(of, call);
      check_frozen(of, call);
      check_parameters(of, call);
    } catch (const Error& error) {
      FAIL_CHECK(error.what());
    }
  }
}

}  // namespace

TEST_CASE("functions over the first, the middle and the last dim, of 0 to 7 elements, are those of PyTorch") {
  check_all(cases_of("functions/over_a_dim", {"x"}), functions_over_a_dim());
}

TEST_CASE("functions of two operands are those of PyTorch by every kind of broadcasting") {
  check_all(cases_of("functions/of_two", {"a", "b"}), functions_of_two());
}
