#include "trireme/autograd/record.hpp"

#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "diary.hpp"
#include "gradient_check.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/norm/normalization.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"

using namespace trireme;

namespace {

using tests::Diary;
using tests::expect_passed;
using tests::Inputs;
using tests::random;

struct Net : nn::Module<Float64> {
  nn::Linear<Float64> hidden{*this, "hidden", {.in = 3, .out = 4}};
  nn::LayerNorm<Float64> norm{*this, "norm", {.width = 4}};

  Net() { initialize({.seed = 1}); }
  Variable<double> forward(const Variable<double>& x) const { return sum(leaky_relu(norm.forward(hidden.forward(x)), 0.1)); }
};

TEST_CASE("an observer sees each operation forward and backward once") {
  const Net net;
  Diary diary;
  const Variable<double> x = random({2, 3}, 1);
  {
    const Observation observation(diary);
    const Tape tape;
    net.forward(x).backward();
  }
  CHECK(diary.open.empty());
  const std::vector<std::string> names{"linear", "layer_norm", "leaky_relu", "sum"};
  CHECK(diary.names(Pass::forward) == names);
  CHECK(diary.names(Pass::backward) == std::vector<std::string>(names.rbegin(), names.rend()));
  for (std::size_t i = 0; i < names.size(); ++i) {
    CHECK(diary.entries[i].number == diary.entries[0].number + i);
    CHECK(diary.entries[2 * names.size() - 1 - i].number == diary.entries[i].number);
  }
  const Diary::Entry& linear = diary.entries[0];
  REQUIRE(linear.operands.size() == 3);
  CHECK(linear.operands[0].storage == x.value().storage());
  CHECK(linear.operands[0].parameter.empty());
  CHECK(linear.operands[1].parameter == "hidden.weight");
  CHECK(linear.operands[2].parameter == "hidden.bias");
  CHECK(linear.operands[2].dtype == DType::float64);
  CHECK(linear.results.at(0).shape == Shape{2, 4});
  CHECK(diary.entries[1].operands.at(0).storage == linear.results[0].storage);
  CHECK(std::get<double>(diary.entries[2].attributes.at("slope")) == 0.1);
  CHECK(std::get<double>(diary.entries[5].attributes.at("slope")) == 0.1);

  net.forward(x);
  CHECK(diary.entries.size() == 2 * names.size());  // the observation has ended
}

TEST_CASE("an observer is told what forward does beside its results") {
  struct Batch : nn::Module<Float64> {
    nn::BatchNorm2d<Float64> norm{*this, "norm", {.channels = 3}};
  } model;
  model.initialize({.seed = 1});
  struct Repeatable : Observer {
    std::map<std::string, bool> of;
    void before(Pass, const OperationView& view) override { of[std::string(view.name)] = view.repeatable; }
  } repeatable;
  const Observation observation(repeatable);
  sum(model.norm.forward(random({2, 2, 2, 3}, 1)));
  CHECK(repeatable.of == std::map<std::string, bool>{{"batch_norm", false}, {"sum", true}});
}

TEST_CASE("operations without a tape pass the gate too") {
  const Net net;
  Diary diary;
  const Observation observation(diary);
  net.forward(random({2, 3}, 1));
  CHECK(diary.names(Pass::forward).size() == 4);
  CHECK(diary.names(Pass::backward).empty());
}

TEST_CASE("a split backward pass shows its two parts") {
  const Net net;
  Diary diary;
  const Observation observation(diary);
  Tape tape;
  const auto y = net.forward(watch(random({2, 3}, 1), [](const Tensor<double>&) {}));
  tape.split_backward();
  y.backward();
  CHECK(diary.names(Pass::backward) == std::vector<std::string>{"sum", "leaky_relu", "layer_norm", "linear", "watch"});
  tape.run_weight_gradients();
  CHECK(diary.names(Pass::backward).back() == "linear");
}

TEST_CASE("observers see operations in the order in which they came, and end an operation by throwing") {
  struct Refusal : Observer {
    void before(Pass, const OperationView& view) override { require(view.name != "scale", "no {} here", view.name); }
  };
  Diary diary;
  Refusal refusal;
  const Variable<double> x = random({2}, 1);
  const Observation first(diary);
  {
    const Observation second(refusal);
    add(x, x);
    CHECK_THROWS_WITH(scale(x, 2.0), "no scale here");
  }
  scale(x, 2.0);
  CHECK(diary.names(Pass::forward) == std::vector<std::string>{"add", "scale", "scale"});
}

// All operands into one, twice the last into another that the caller's number scales.
struct Concatenate {
  static constexpr std::string_view name = "concatenate";

  void forward(const std::vector<Tensor<double>>& parts, const Tensor<double>& last, std::int64_t& count, Tensor<double>& all,
               Tensor<double>& twice) const {
    count = 0;
    for (const Tensor<double>& part : parts) {
      std::copy_n(part.data(), part.numel(), all.data() + count);
      count += part.numel();
    }
    ops::scale(last, 2.0, twice);
  }
  void backward(const Tensor<double>& dall, const Tensor<double>& dtwice, const std::vector<Tensor<double>>& parts,
                const std::vector<Gradient<double>>& dparts, const Gradient<double>& dlast) const {
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (dall.defined()) dparts[i].give(dall.narrow(begin, parts[i].numel()).clone());
      begin += parts[i].numel();
    }
    if (!dall.defined()) {
      for (const Gradient<double>& dpart : dparts) {
        dpart.contribute([](Tensor<double>& out, bool accumulate) {
          if (!accumulate) std::fill_n(out.data(), out.numel(), 0.0);
        });
      }
    }
    dlast.contribute([&](Tensor<double>& out, bool accumulate) {
      if (dtwice.defined()) return ops::scale(dtwice, 2.0, out, accumulate);
      if (!accumulate) std::fill_n(out.data(), out.numel(), 0.0);
    });
  }
};

std::tuple<Variable<double>, Variable<double>> concatenate(const std::vector<Variable<double>>& parts,
                                                           const Variable<double>& last, std::int64_t& count) {
  const auto results = [&] {
    std::int64_t total = 0;
    for (const Variable<double>& part : parts) total += part.shape().numel();
    return std::tuple(Result<double>{{total}}, Result<double>{last.shape()});
  };
  return record(Concatenate{}, results, kept(parts), last, written(count));
}

TEST_CASE("an operation of one's own has vectors of operands, several results and numbers of the caller") {
  std::int64_t count = 0;
  const Variable<double> a = random({2}, 1);
  const auto [all, twice] = concatenate({a, random({3}, 2)}, random({4}, 3), count);
  CHECK(count == 5);
  CHECK(all.shape() == Shape{5});
  CHECK(all.value().data()[1] == a.value().data()[1]);
  CHECK_FALSE(all.gradient().needed());

  const std::vector<Tensor<double>> inputs{random({2}, 1), random({3}, 2), random({4}, 3)};
  for (const int used : {1, 2, 3}) {
    CAPTURE(used);
    const auto function = [&](const Inputs& in) {
      const auto [first, second] = concatenate({in[0], in[1]}, in[2], count);
      if (used == 1) return sum(multiply(first, first));
      if (used == 2) return sum(multiply(second, second));
      return add(sum(multiply(first, first)), sum(multiply(second, second)));
    };
    expect_passed(testing::check_gradients(function, inputs));
  }
  CHECK_THROWS_WITH(concatenate({a, {}}, a, count), ContainsSubstring("concatenate: operand 1 of 2 is undefined"));
  CHECK_THROWS_WITH(concatenate({a}, {}, count), ContainsSubstring("concatenate: operand 2 of 2 is undefined"));
}

}  // namespace
