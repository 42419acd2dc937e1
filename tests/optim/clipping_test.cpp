// Gradients that are clipped by norms and values of their own.

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/optim/adam.hpp"
#include "trireme/optim/lamb.hpp"
#include "trireme/optim/sgd.hpp"

using namespace trireme;

namespace {

using Groups = std::vector<optim::ParameterGroup>;

// Three parameters; a step of SGD with rate 1 moves each element by its clipped gradient.
struct Weights {
  Model model{DType::float32};
  FlatStore& store = model.store();
  int embed = store.add("embed", {2}, Initializer::constant(0));
  int weight = store.add("weight", {3}, Initializer::constant(0));
  int bias = store.add("bias", {2}, Initializer::constant(0));

  Weights() { store.initialize<float>(1); }

  // Gradients of the loss times `loss_scale`; the optimizer is told of a mean over half as many targets.
  StepSummary with_gradients(const std::map<int, std::vector<float>>& gradients, float loss_scale = 1) {
    StepSummary summary{
        .target_weight = 1, .gradient_scale = 0.5 / static_cast<double>(loss_scale), .used = {true, true, true}};
    double squares = 0;
    for (const auto& [parameter, elements] : gradients) {
      for (std::size_t i = 0; i < elements.size(); ++i) {
        store.gradient<float>(parameter).data()[i] = elements[i] * loss_scale;
        squares += static_cast<double>(elements[i]) * static_cast<double>(elements[i]);
      }
    }
    summary.gradient_norm = 0.5 * std::sqrt(squares);
    return summary;
  }
  std::vector<float> moved(int parameter) {
    std::vector<float> steps;
    for (float& value : store.values<float>(parameter).span()) steps.push_back(std::exchange(value, 0.0F));
    return steps;
  }
  void require_moved(int parameter, const std::vector<double>& wanted) {
    const auto got = moved(parameter);
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(static_cast<double>(got[i]) == Approx(-wanted[i]).epsilon(1e-5));
  }
};

}  // namespace

// torch.nn.utils.clip_grad_norm_ for the parameters of each group and for the others, then clip_grad_value_.
TEST_CASE("a group with a clip_norm is clipped by its own norm, the others by theirs") {
  for (const float loss_scale : {1.0F, 1024.0F}) {
    CAPTURE(loss_scale);
    Weights weights;
    optim::Sgd<Float32> optimizer(weights.model, {.learning_rate = 1, .groups = {{.pattern = "embed", .clip_norm = 1}}});
    // Halved: embed 3, 4 of norm 5; the others 1, 2, 2 and 0, 4 of norm 5.
    const StepSummary summary =
        weights.with_gradients({{weights.embed, {6, 8}}, {weights.weight, {2, 4, 4}}, {weights.bias, {0, -8}}}, loss_scale);
    optimizer.step(summary, {.clip_norm = 2.5});
    weights.require_moved(weights.embed, {0.6, 0.8});
    weights.require_moved(weights.weight, {0.5, 1, 1});
    weights.require_moved(weights.bias, {0, -2});
    optimizer.step(weights.with_gradients({{weights.embed, {0.6F, 0.8F}}, {weights.weight, {2, 4, 4}}, {weights.bias, {0, -8}}},
                                          loss_scale));
    weights.require_moved(weights.embed, {0.3, 0.4});  // below 1
    weights.require_moved(weights.bias, {0, -4});      // no limit
  }
}

TEST_CASE("the norm comes first, then the value, and a group may have its own of both") {
  Weights weights;
  optim::Sgd<Float32> optimizer(weights.model, {.learning_rate = 1,
                                                .groups = {{.pattern = "embed", .clip_norm = 1, .clip_value = 0.7},
                                                           {.pattern = "bias", .clip_norm = 0, .clip_value = 0}}});
  const StepSummary summary =
      weights.with_gradients({{weights.embed, {6, 8}}, {weights.weight, {2, -4, 4}}, {weights.bias, {1, -8}}});
  optimizer.step(summary, {.clip_norm = 1.5, .clip_value = 0.8});
  weights.require_moved(weights.embed, {0.6, 0.7});
  weights.require_moved(weights.weight, {0.5, -0.8, 0.8});  // of norm 3
  weights.require_moved(weights.bias, {0.5, -4});           // no limits
}

TEST_CASE("a parameter that nobody used counts for no norm, and a step that is not finite clips nothing") {
  Weights weights;
  optim::Sgd<Float32> optimizer(weights.model, {.learning_rate = 1, .groups = {{.pattern = "[we]*", .clip_norm = 1}}});
  StepSummary summary = weights.with_gradients({{weights.embed, {6, 8}}, {weights.weight, {2, 4, 4}}});
  summary.used[static_cast<std::size_t>(weights.weight)] = false;
  optimizer.step(summary);
  weights.require_moved(weights.embed, {0.6, 0.8});
  weights.require_moved(weights.weight, {0, 0, 0});
  summary = weights.with_gradients({{weights.embed, {6, std::nanf("")}}});
  CHECK_FALSE(optimizer.step(summary, {.non_finite = optim::NonFinitePolicy::skip}));
  weights.require_moved(weights.embed, {0, 0});
}

TEST_CASE("without limits of their own groups are clipped with all, by the same bits") {
  Weights one;
  Weights other;
  optim::Adam<Float32> plain(one.model);
  optim::Adam<Float32> grouped(other.model, {.groups = {{.pattern = "embed"}}});
  for (Weights* weights : {&one, &other}) {
    optim::Adam<Float32>& optimizer = weights == &one ? plain : grouped;
    optimizer.step(weights->with_gradients({{weights->embed, {6, 8}}, {weights->bias, {1, -8}}}), {.clip_norm = 0.3});
  }
  CHECK(one.moved(one.embed) == other.moved(other.embed));
  CHECK(one.moved(one.bias) == other.moved(other.bias));
}

TEST_CASE("LAMB measures gradients that are clipped by group") {
  Weights clipped;
  Weights wanted;
  optim::Lamb<Float32> optimizer(clipped.model, {.learning_rate = 0.1, .groups = {{.pattern = "embed", .clip_norm = 0.5}}});
  optim::Lamb<Float32> plain(wanted.model, {.learning_rate = 0.1});
  optimizer.step(clipped.with_gradients({{clipped.embed, {6, 8}}, {clipped.weight, {2, 4, 4}}}));
  plain.step(wanted.with_gradients({{wanted.embed, {0.6F, 0.8F}}, {wanted.weight, {2, 4, 4}}}));
  for (const int parameter : {clipped.embed, clipped.weight}) {
    const auto got = clipped.moved(parameter);
    const auto exact = wanted.moved(parameter);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(exact[i]).epsilon(1e-5));
  }
}

TEST_CASE("limits that make no sense are refused, and settings name those of groups") {
  Weights weights;
  CHECK_THROWS_WITH(
      optim::Sgd<Float32>(weights.model, {.groups = {{.pattern = "embed", .clip_norm = -1}}}),
      ContainsSubstring("the clip_norm and clip_value of the parameter group \"embed\" are finite and 0 or more"));
  const optim::Sgd<Float32> optimizer(weights.model, {.groups = {{.pattern = "embed", .clip_norm = 2, .clip_value = 0.5}}});
  bool found = false;
  for (const auto& [name, value] : optimizer.settings()) {
    found = found || (name == "group embed" && value.ends_with(", clip_norm 2, clip_value 0.5"));
  }
  CHECK(found);
}
