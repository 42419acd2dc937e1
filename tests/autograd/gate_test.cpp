// Edge cases of the gate of operations: operands, results and errors.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "backward_function.hpp"
#include "catch.hpp"
#include "gradient_check.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/parameter.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/device/memory.hpp"

using namespace trireme;

namespace {

using tests::random;

struct Store {
  std::shared_ptr<Model> model = std::make_shared<Model>(DType::float64);
  FlatStore* store = &model->store();
  Parameter<double> add(const std::string& name, const Shape& shape) {
    return Parameter<double>(model, store->add(name, shape, Initializer::constant(0.5)));
  }
};

struct Finals : GradientListener {
  std::vector<int> parameters;
  void on_final(int parameter) override { parameters.push_back(parameter); }
};

std::vector<double> values_of(const Tensor<double>& tensor) { return {tensor.span().begin(), tensor.span().end()}; }

TEST_CASE("a split backward pass waits for no weight that is computed: its gradient goes on to what it is made of") {
  std::vector<double> gradients[2];
  std::vector<double> watched[2];
  for (const bool split : {false, true}) {
    Store store;
    const auto weight = store.add("weight", {2, 3});
    const auto bias = store.add("bias", {2});
    store.store->initialize<double>(0);
    Tape tape;
    if (split) tape.split_backward();
    const auto other = watch(random({2}, 3), [&](const Tensor<double>& gradient) { watched[split] = values_of(gradient); });
    const Variable<double> x = random({4, 3}, 1);
    const auto y = linear(x, scale(weight.variable(), 2.0), bias.master());
    const auto z = linear(x, weight.variable(), other);
    sum(multiply(add(y, z), add(y, z))).backward();
    if (split) tape.run_weight_gradients();
    gradients[split] = values_of(store.store->gradients<double>());
  }
  CHECK(gradients[0] == gradients[1]);
  CHECK(watched[0] == watched[1]);
  CHECK_FALSE(watched[1].empty());
}

TEST_CASE("one parameter as the operand that waits and as one that does not") {
  std::vector<double> gradients[2];
  for (const bool split : {false, true}) {
    Store store;
    const auto weight = store.add("weight", {3, 3});
    store.store->initialize<double>(0);
    Finals finals;
    Tape tape;
    tape.listen(*store.store, finals);
    if (split) tape.split_backward();
    const auto w = weight.variable();
    const auto y = linear(w, w);
    sum(multiply(y, y)).backward();
    if (split) {
      CHECK(finals.parameters.empty());
      tape.run_weight_gradients();
    }
    CHECK(finals.parameters == std::vector<int>{weight.index()});
    gradients[split] = values_of(store.store->gradients<double>());
  }
  CHECK(gradients[0] == gradients[1]);
}

struct Throws {
  static constexpr std::string_view name = "throws";
  bool forward_throws = false;
  int* calls = nullptr;
  void forward(const auto&...) const {
    ++*calls;
    if (forward_throws) throw std::runtime_error("forward has failed");
  }
  void backward(const auto&...) const { throw std::runtime_error("backward has failed"); }
};

TEST_CASE("an operation that fails forward leaves the counted uses as they were") {
  Store store;
  const auto weight = store.add("weight", {2});
  const auto other = store.add("other", {2});
  store.store->initialize<double>(0);
  Tape outer;
  const auto of_outer = watch(random({2}, 1), [](const Tensor<double>&) {});
  Finals finals;
  Tape tape;
  tape.listen(*store.store, finals);
  const auto w = weight.master();
  int calls = 0;
  CHECK_THROWS_WITH(record(Throws{true, &calls}, Result<double>{{2}}, w), "forward has failed");
  CHECK(calls == 1);
  CHECK_THROWS_WITH(add(w, Variable<double>(random({3}, 1))), ContainsSubstring("add"));
  const auto on_two_tapes = [&] { record(Throws{false, &calls}, Result<double>{{2}}, w, of_outer); };
  CHECK_THROWS_WITH(on_two_tapes(), ContainsSubstring("throws: an operand was recorded on another tape"));
  CHECK(calls == 1);  // refused before it has computed anything

  sum(multiply(scale(w, 2.0), other.master())).backward();
  CHECK(finals.parameters == std::vector<int>{other.index(), weight.index()});  // in backward, when the last use is done
}

TEST_CASE("an operation that fails backward leaves no contribution open") {
  Store store;
  const auto weight = store.add("weight", {2});
  store.store->initialize<double>(0);
  {
    const Tape tape;
    const auto fails = [](const auto&, const auto& dx) {
      dx.contribute([](auto&, bool) { throw std::runtime_error("backward has failed"); });
    };
    const auto y = record(tests::BackwardFunction{"fails", fails}, Result<double>{.existing = random({2}, 1)}, weight.master());
    CHECK_THROWS_WITH(sum(y).backward(), "backward has failed");
    CHECK_THROWS_WITH(sum(y).backward(), ContainsSubstring("recorded after backward()"));
  }
  const Tape tape;
  sum(scale(weight.master(), 3.0)).backward();
  CHECK(values_of(weight.gradient()) == std::vector<double>{3, 3});
}

// The sum of all parts, of which some may be undefined.
struct SumOfParts {
  static constexpr std::string_view name = "sum_of_parts";
  void forward(const std::vector<Tensor<double>>& parts, Tensor<double>& y) const {
    std::fill_n(y.data(), y.numel(), 0.0);
    for (const Tensor<double>& part : parts) {
      if (part.defined()) ops::add(y, part, y);
    }
  }
  void backward(const Tensor<double>& dy, const std::vector<Gradient<double>>& dparts) const {
    for (const Gradient<double>& dpart : dparts) dpart.give(dy);
  }
};

TEST_CASE("a vector of operands may be empty, and one that is optional have gaps") {
  const auto of = [](const std::vector<Variable<double>>& parts) {
    return record(SumOfParts{}, Result<double>{{2}}, optional(parts));
  };
  CHECK(values_of(of({}).value()) == std::vector<double>{0, 0});
  const Tape tape;
  CHECK_FALSE(of({}).gradient().needed());
  std::vector<double> gradient;
  const auto x = watch(random({2}, 1), [&](const Tensor<double>& dx) { gradient = values_of(dx); });
  const auto y = of({{}, x, {}, x});
  CHECK(values_of(y.value()) == values_of(scale(x, 2.0).value()));
  sum(y).backward();
  CHECK(gradient == std::vector<double>{2, 2});
}

TEST_CASE("results without elements and NaNs pass as others do") {
  const Tape tape;
  Tensor<double> of_empty;
  Tensor<double> of_nan;
  const auto empty = watch(Tensor<double>({0, 3}), [&](const Tensor<double>& dx) { of_empty = dx; });
  const auto nan = watch(Tensor<double>::full({2}, std::numeric_limits<double>::quiet_NaN()),
                         [&](const Tensor<double>& dx) { of_nan = dx; });
  const auto y = multiply(empty, empty);
  CHECK(y.shape() == Shape{0, 3});
  add(sum(y), sum(multiply(nan, nan))).backward();
  CHECK(of_empty.shape() == Shape{0, 3});
  CHECK(std::isnan(of_nan.data()[0]));
}

TEST_CASE("the result of an operation may be its operand under another shape") {
  Store store;
  const auto weight = store.add("weight", {2, 3});
  store.store->initialize<double>(0);
  const Tape tape;
  const auto w = weight.master();
  const auto flat = reshape(w, {6});
  CHECK(flat.value().data() == w.value().data());
  add(sum(multiply(flat, flat)), sum(w)).backward();
  CHECK(values_of(weight.gradient()) == std::vector<double>(6, 2.0));  // 2 w + 1
}

TEST_CASE("an operation keeps what is marked, until its backward pass has run") {
  const auto in_use = [] { return device::host_memory_statistics().in_use_bytes; };
  const Shape shape{1 << 14};
  constexpr std::size_t bytes = (1 << 14) * sizeof(double);
  const Tape tape;
  auto x = watch(Tensor<double>::full(shape, 1), [](const Tensor<double>&) {});
  const std::size_t before = in_use();
  auto y = scale(scale(x, 2.0), 2.0);  // keeps nothing
  CHECK(in_use() == before + bytes);
  y = leaky_relu(y, 0.1);  // keeps its operand
  CHECK(in_use() == before + 2 * bytes);
  std::size_t during = 0;
  auto loss = sum(record(tests::BackwardFunction{"looks",
                                                 [&](const auto& dy, const auto& dx) {
                                                   during = in_use();
                                                   dx.give(dy);
                                                 }},
                         Result<double>{.existing = x.value()}, scale(y, 1.0)));
  y = {};
  loss.backward();
  loss = {};
  CHECK(during <= before + 3 * bytes);
  CHECK(in_use() <= before);
}

}  // namespace
