#include "trireme/autograd/recompute.hpp"

#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "autograd/small_store.hpp"
#include "catch.hpp"
#include "trireme/autograd/composed/operators.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/operations/pointwise.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/parameter.hpp"
#include "trireme/autograd/tape.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/ops/pointwise/operators.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr std::int64_t width = 6;
const TapeOptions names{.seed = 3, .step = 2, .first_sample = 4, .samples = 4};

// Blocks with dropout and a weight that all of them share.
struct Net {
  Store store;
  Parameter<float> shared = store.add("shared", {width, width});
  std::vector<Parameter<float>> weights;
  Tensor<float> x{{4, width}};

  Net() {
    for (int block = 0; block < 3; ++block) weights.push_back(store.add("weight" + std::to_string(block), {width, width}));
    store.store->initialize<float>(0);
    const Tensor<float> values = store.store->values<float>();
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      values.data()[i] = static_cast<float>(0.4 * philox_normal(1, 2, static_cast<std::uint64_t>(i)));
    }
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      x.data()[i] = static_cast<float>(philox_normal(1, 3, static_cast<std::uint64_t>(i)));
    }
  }

  Variable<float> block(std::size_t number, const Variable<float>& input) const {
    const auto hidden = dropout(gelu(linear(input, weights[number].variable(), {})), 0.3, "hidden");
    return add(input, dropout(linear(hidden, shared.variable(), {}), 0.3, "hidden"));
  }
  std::vector<float> gradients() const {
    const auto all = store.store->gradients<float>().span();
    return {all.begin(), all.end()};
  }
};

struct Outcome {
  std::vector<float> numbers;  // the loss, the gradients of x and of the parameters
  std::vector<int> finals;     // the parameters in the order in which their gradients became final
  bool operator==(const Outcome&) const = default;
};

// forward(net, x) computes the loss.
template <typename F>
Outcome outcome_of(const F& forward, bool splits = false) {
  const Net net;
  Outcome outcome;
  Listener listener;
  Tape tape(names.restarted());
  tape.listen(*net.store.store, listener);
  if (splits) tape.split_backward();
  std::vector<float> of_x;
  const auto x = watch(net.x, [&](const Tensor<float>& dx) { of_x.assign(dx.data(), dx.data() + dx.numel()); });
  const Variable<float> loss = forward(net, x);
  outcome.numbers.push_back(loss.value().item());
  loss.backward();
  if (splits) tape.run_weight_gradients();
  outcome.numbers.insert(outcome.numbers.end(), of_x.begin(), of_x.end());
  const auto gradients = net.gradients();
  outcome.numbers.insert(outcome.numbers.end(), gradients.begin(), gradients.end());
  outcome.finals = listener.final_parameters;
  return outcome;
}

Variable<float> plain(const Net& net, Variable<float> x) {
  for (std::size_t number = 0; number < 3; ++number) x = net.block(number, x);
  return sum(multiply(x, x));
}

Variable<float> recomputed(const Net& net, Variable<float> x) {
  for (std::size_t number = 0; number < 3; ++number) {
    x = recompute([&net, number](const Variable<float>& y) { return net.block(number, y); }, x);
  }
  return sum(multiply(x, x));
}

}  // namespace

TEST_CASE("recompute gives the same bits and the same order of final gradients, whole, in parts and nested") {
  const Outcome expected = outcome_of(plain);
  CHECK(expected.numbers.front() > 0);
  CHECK(outcome_of(recomputed) == expected);

  CHECK(outcome_of([](const Net& net, const Variable<float>& x) {
          return recompute([&net](const Variable<float>& y) { return recomputed(net, y); }, x);
        }) == expected);
  CHECK(outcome_of([](const Net& net, const Variable<float>& x) {
          return recompute([&net, x] { return recomputed(net, x); });  // x is captured
        }) == expected);
  CHECK(outcome_of([](const Net& net, Variable<float> x) {
          x = net.block(0, x);
          std::tie(x, std::ignore) =
              recompute([&net](const std::vector<Variable<float>>& y) { return std::tuple(net.block(1, y.at(0)), y.at(0)); },
                        std::vector<Variable<float>>{x});
          x = net.block(2, x);
          return sum(multiply(x, x));
        }) == expected);
  CHECK(outcome_of(recomputed, true) == outcome_of(plain, true));  // a split backward pass
}

TEST_CASE("recompute keeps what goes into a function, and nothing of what it computes") {
  const Net net;
  for (const bool recomputes : {false, true}) {
    CAPTURE(recomputes);
    Tape tape(names.restarted());
    std::weak_ptr<const device::Storage> hidden;
    const auto compute = [&](const Variable<float>& x) {
      const auto wide = linear(x, net.weights[0].variable(), {});
      hidden = wide.value().storage();
      return linear(gelu(wide), net.shared.variable(), {});
    };
    const Variable<float> x(net.x);
    const auto y = recomputes ? recompute(compute, x) : compute(x);
    CHECK(hidden.expired() == recomputes);
    sum(y).backward();
    CHECK(hidden.expired());
  }
}

TEST_CASE("recompute of losses that a function adds, of results without a path to the loss, and of constants") {
  const auto with_added = [](bool recomputes) {
    return outcome_of([recomputes](const Net& net, const Variable<float>& x) {
      const auto layer = [&net](const Variable<float>& y) {
        const auto z = net.block(0, y);
        add_loss(scale(sum(multiply(z, z)), 0.1F));
        return z;
      };
      const auto z = recomputes ? recompute([&](const Variable<float>& y) { return recompute(layer, y); }, x) : layer(x);
      CHECK(Tape::current()->added_losses().size() == 1);
      return sum(z);
    });
  };
  CHECK(with_added(true) == with_added(false));

  const auto one_of_two = [](bool recomputes) {
    return outcome_of([recomputes](const Net& net, const Variable<float>& x) {
      const auto unused = [&net](const Variable<float>& y) { return net.block(1, y); };
      if (recomputes) {
        recompute(unused, x);
      } else {
        unused(x);
      }
      return sum(net.block(0, x));
    });
  };
  CHECK(one_of_two(true) == one_of_two(false));

  const Net net;
  Tape tape(names.restarted());
  int runs = 0;
  const auto constant = recompute(
      [&runs](const Variable<float>& x) {
        ++runs;
        return multiply(x, x);
      },
      Variable<float>(net.x));
  CHECK(constant.slot() == nullptr);
  sum(multiply(constant, net.shared.variable().value().narrow(0, 4))).value();
  CHECK(runs == 1);
}

TEST_CASE("once() and repeats() tell an operation that a function runs again") {
  const Net net;
  Tape tape(names.restarted());
  std::vector<std::pair<int, bool>> seen;
  int state = 0;
  const auto compute = [&](const Variable<float>& x) {
    const int at_first = Tape::once([&] { return ++state; });
    const Tape inner(names);
    seen.emplace_back(at_first * 10 + Tape::once([&] { return ++state; }), Tape::repeats());
    return x;
  };
  const auto twice = [&](const Variable<float>& x) {
    compute(x);
    return linear(x, net.weights[0].variable(), {});
  };
  const auto y = recompute([&](const Variable<float>& x) { return recompute(twice, x); }, Variable<float>(net.x));
  sum(y).backward();
  CHECK(seen == std::vector<std::pair<int, bool>>{{12, false}, {12, true}, {12, true}});
  CHECK(state == 2);
  CHECK_FALSE(Tape::repeats());
}

namespace {

// y = x, with a gradient; forward counts its calls, and may keep something in the operation.
struct Copy {
  static constexpr std::string_view name = "copy";
  int* calls;
  void forward(const auto& x, auto& y) const {
    ++*calls;
    ops::scale(x, 1.0F, y);
  }
  void backward(const auto& dy, const auto& dx) const { dx.give(dy); }
};
struct CopyWithState : Copy {
  bool ran = false;
  void forward(const auto& x, auto& y) {
    Copy::forward(x, y);
    ran = true;
  }
  void backward(const auto& dy, const auto& dx) const {
    REQUIRE(ran);
    dx.give(dy);
  }
};

}  // namespace

TEST_CASE("a further run leaves out the operations after the last one that keeps something") {
  const auto gradient_and_calls = [](bool recomputes, bool with_state, bool nested) {
    int calls = 0;
    const Outcome outcome = outcome_of([&](const Net& net, const Variable<float>& x) {
      const auto copied = [&](const Variable<float>& y) {
        const Result<float> result{y.shape()};
        return with_state ? record(CopyWithState{{&calls}}, result, y) : record(Copy{&calls}, result, y);
      };
      const auto layer = [&](const Variable<float>& y) { return copied(add(y, copied(net.block(0, copied(y))))); };
      const auto around = [&](const Variable<float>& y) { return nested ? copied(recompute(layer, y)) : layer(y); };
      const auto y = recomputes ? recompute(around, x) : around(x);
      return sum(multiply(y, y));
    });
    return std::pair(outcome, calls);
  };
  const auto [expected, once] = gradient_and_calls(false, false, false);
  CHECK(once == 3);
  const auto [left_out, calls] = gradient_and_calls(true, false, false);
  CHECK(left_out == expected);
  CHECK(calls == 4);  // in the second run only the first copy, from which the block computes
  const auto [with_state, all_calls] = gradient_and_calls(true, true, false);
  CHECK(with_state == expected);
  CHECK(all_calls == 6);
  CHECK(gradient_and_calls(true, false, true).first == expected);
  CHECK(gradient_and_calls(true, true, true).first == expected);
}

TEST_CASE("recompute names what makes the second run another one") {
  const Net net;
  Tape tape(names.restarted());
  const Variable<float> x(net.x.clone());
  const auto block = [&net](const Variable<float>& y) { return net.block(0, y); };

  SECTION("the function changes its input") {
    CHECK_THROWS_WITH(recompute(
                          [&](const Variable<float>& y) {
                            Tensor<float> same = y.value();
                            same *= 2;
                            return net.block(0, y);
                          },
                          x),
                      ContainsSubstring("changes an input in place"));
    CHECK_NOTHROW(recompute(block, x));  // the tape goes on
  }
  SECTION("an input is changed afterwards") {
    const auto y = sum(recompute(block, x));
    Tensor<float> same = x.value();
    same *= 2;
    CHECK_THROWS_WITH(y.backward(), ContainsSubstring("an input of the function was changed in place"));
  }
  SECTION("a parameter is updated") {
    const auto y = sum(recompute(block, x));
    net.store.store->refresh_compute_copy();
    CHECK_THROWS_WITH(y.backward(), ContainsSubstring("did something else"));
  }
  SECTION("the function uses other parameters") {
    std::size_t number = 0;
    const auto y = sum(recompute([&](const Variable<float>& z) { return net.block(number, z); }, x));
    number = 1;
    CHECK_THROWS_WITH(y.backward(), ContainsSubstring("used other parameters"));
  }
  SECTION("the function returns another shape, or a constant") {
    bool first = true;
    bool constant = false;
    const auto y = sum(recompute(
        [&](const Variable<float>& z) {
          const auto result = net.block(0, z);
          if (std::exchange(first, false)) return sum(result);
          return constant ? sum(result).detach() : result;
        },
        x));
    constant = GENERATE(false, true);
    CHECK_THROWS_WITH(y.backward(), ContainsSubstring("did something else"));
  }
  SECTION("the function throws in the first run, or in the second") {
    int runs = 0;
    const int throws_in = GENERATE(1, 2);
    const auto throwing = [&](const Variable<float>& z) {
      const auto result = net.block(0, z);
      if (++runs == throws_in) throw Error({.code = ErrorCode::invalid_argument, .message = "run " + std::to_string(runs)});
      return result;
    };
    if (throws_in == 1) {
      CHECK_THROWS_WITH(recompute(throwing, x), ContainsSubstring("run 1"));
      CHECK_NOTHROW(sum(recompute(block, x)));
    } else {
      CHECK_THROWS_WITH(sum(recompute(throwing, x)).backward(), ContainsSubstring("run 2"));
      CHECK_FALSE(Tape::repeats());
    }
  }
}
