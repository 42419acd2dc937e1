// Texts of any function from tokens to logits. GPT and LSTM give the same texts as their own logits called through such a
// function.
#include "trireme/models/architectures/generate.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "catch.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

using namespace trireme;

namespace {

using Tokens = std::vector<std::int32_t>;
using Text = std::span<const std::int32_t>;

constexpr float infinity = std::numeric_limits<float>::infinity();

// A cycle: the token after t is t + 1.
template <typename T>
Tensor<T> next_in_cycle(Text text) {
  auto logits = Tensor<T>::full({5}, T(0.0F));
  logits.at((text.back() + 1) % 5) = T(8.0F);
  return logits;
}

std::string refusal(const auto& next_logits) {
  try {
    models::generate(next_logits, {1}, {.count = 1});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEMPLATE_TEST_CASE("any function of tokens is sampled", "", float, double, bfloat16, float16) {
  using T = TestType;
  const auto likely = models::generate(next_in_cycle<T>, {3}, {.count = 6, .temperature = 0});
  CHECK(likely == Tokens{4, 0, 1, 2, 3, 4});
  const auto as_variable = [](Text text) { return Variable<T>(next_in_cycle<T>(text)); };
  CHECK(models::generate(as_variable, {3}, {.count = 6, .temperature = 0}) == likely);
  const auto hot = models::generate(as_variable, {3}, {.count = 40, .temperature = 100, .seed = 2});
  CHECK(hot == models::generate(as_variable, {3}, {.count = 40, .temperature = 100, .seed = 2}));
  CHECK(hot != models::generate(as_variable, {3}, {.count = 40, .temperature = 100, .seed = 3}));
  CHECK(models::generate(as_variable, {3}, {.count = 0}).empty());
}

TEST_CASE("of logits for all positions the last row counts") {
  std::size_t longest = 0;
  const auto of_all = [&](Text text) {
    longest = std::max(longest, text.size());
    auto logits = Tensor<float>::full({1, std::ssize(text), 4}, 0);
    logits.at(0, -1, text.front()) = 9;
    return logits;
  };
  CHECK(models::generate(of_all, {2, 1}, {.count = 3, .temperature = 0}) == Tokens{2, 2, 2});
  CHECK(longest == 4);
}

TEST_CASE("tokens are drawn as often as softmax(logits / temperature) says") {
  const std::array<double, 4> wanted{0.1, 0.2, 0.3, 0.4};
  const auto logits = [&](Text) {
    Tensor<double> y({5});
    for (std::size_t at = 0; at < 4; ++at) y.span()[at] = 2 * std::log(wanted[at]);
    y.at(4) = -std::numeric_limits<double>::infinity();
    return y;
  };
  std::array<double, 5> found{};
  const int count = 20000;
  for (const std::int32_t token : models::generate(logits, {0}, {.count = count, .temperature = 2, .seed = 7})) {
    found[static_cast<std::size_t>(token)] += 1.0 / count;
  }
  for (std::size_t at = 0; at < 4; ++at) CHECK(found[at] == Approx(wanted[at]).margin(0.015));
  CHECK(found[4] == 0);
}

TEST_CASE("top_k and top_p leave the most likely tokens, drawn as often as these are likely") {
  const std::vector<double> shares{0.05, 0.3, 0.02, 0.3, 0.13, 0.2};
  const auto logits = [&](Text) {
    Tensor<double> y({6});
    for (std::size_t at = 0; at < 6; ++at) y.span()[at] = std::log(shares[at]);
    return y;
  };
  const auto check = [&](models::GenerateOptions options, const std::vector<double>& wanted) {
    options.count = 20000;
    std::vector<double> found(6);
    for (const std::int32_t token : models::generate(logits, {0}, options))
      found[static_cast<std::size_t>(token)] += 1.0 / 20000;
    for (std::size_t at = 0; at < 6; ++at) {
      CAPTURE(at);
      CHECK(found[at] == Approx(wanted[at]).margin(wanted[at] == 0 ? 0 : 0.015));
    }
  };
  check({.top_k = 3}, {0, 0.375, 0, 0.375, 0, 0.25});
  check({.top_k = 1}, {0, 0.5, 0, 0.5, 0, 0});  // as likely as the last that is left
  check({.top_k = 100}, shares);
  check({.top_p = 0.7}, {0, 0.375, 0, 0.375, 0, 0.25});
  check({.top_p = 0.1}, {0, 1, 0, 0, 0, 0});  // one at least, the first of equals
  check({.top_p = 0.999}, shares);
  check({.top_k = 3, .top_p = 0.5}, {0, 0.5, 0, 0.5, 0, 0});
  // Temperature comes first: 0.3, 0.3, 0.2, 0.13, ... become 0.375, 0.375, 0.1667, 0.07, ...
  check({.temperature = 0.5, .top_p = 0.7}, {0, 0.5, 0, 0.5, 0, 0});
}

TEST_CASE("a GPT and an LSTM are sampled as functions of the same logits") {
  models::Gpt<Float32> gpt({.layers = 1, .heads = 2, .width = 8, .block = 6, .vocabulary = 11});
  gpt.initialize({.seed = 4});
  const auto of_gpt = [&](Text text) {
    const auto seen = text.last(std::min<std::size_t>(text.size(), 6));
    return gpt.logits(Tensor<std::int32_t>::from({1, std::ssize(seen)}, seen));
  };
  CHECK(models::generate(of_gpt, {1, 2, 3}, {.count = 20, .seed = 5}) ==
        models::generate(gpt, {1, 2, 3}, {.count = 20, .seed = 5}));

  models::LstmLm<Float32> lstm({.vocabulary = 11, .embedding = 4, .hidden = 8, .layers = 1});
  lstm.initialize({.seed = 4});
  const auto of_lstm = [&](Text text) {
    models::LstmLm<Float32>::State state;
    return lstm.logits(Tensor<std::int32_t>::from({1, std::ssize(text)}, text), state);
  };
  CHECK(models::generate(of_lstm, {1, 2, 3}, {.count = 20, .seed = 5}) ==
        models::generate(lstm, {1, 2, 3}, {.count = 20, .seed = 5}));
}

TEST_CASE("what can't be sampled is refused") {
  const auto constant = [](std::initializer_list<float> logits) {
    return [y = Tensor<float>::from({std::ssize(std::vector<float>(logits))}, logits)](Text) { return y; };
  };
  CHECK(refusal(constant({1, 2})) == "no error");
  CHECK(refusal(constant({-infinity, 2})) == "no error");
  CHECK_THAT(refusal(constant({1, NAN})), ContainsSubstring("generate() got a NaN among the logits"));
  CHECK_THAT(refusal(constant({NAN, 1})), ContainsSubstring("generate() got a NaN among the logits"));
  CHECK_THAT(refusal(constant({1, infinity})), ContainsSubstring("no finite number or an infinity"));
  CHECK_THAT(refusal(constant({-infinity, -infinity})), ContainsSubstring("no finite number or an infinity"));
  CHECK_THAT(refusal([](Text) { return Tensor<float>(); }), ContainsSubstring("not an undefined tensor"));
  CHECK_THAT(refusal([](Text) { return Tensor<float>({0, 4}); }), ContainsSubstring("not those of shape [0, 4]"));
  CHECK_THAT(refusal([](Text) { return Tensor<float>::full({}, 1); }), ContainsSubstring("not those of shape []"));
  const auto next = next_in_cycle<float>;
  CHECK_THROWS_WITH(models::generate(next, {}, {}), ContainsSubstring("a prompt of at least one token"));
  CHECK_THROWS_WITH(models::generate(next, {1}, {.count = -1}), ContainsSubstring("got a count of -1"));
  CHECK_THROWS_WITH(models::generate(next, {1}, {.temperature = -1}), ContainsSubstring("a temperature is 0 or more"));
  CHECK_THROWS_WITH(models::generate(next, {1}, {.temperature = NAN}), ContainsSubstring("a temperature is 0 or more"));
  const Tape tape;
  CHECK_THROWS_WITH(models::generate(next, {1}, {}), ContainsSubstring("call it without a tape"));
}

TEST_CASE("generation continues a prompt, sees one block at most and repeats for the same seed") {
  models::Gpt<Float32> model({.layers = 1, .heads = 2, .width = 8, .block = 6, .vocabulary = 11});
  model.initialize({.seed = 4});
  const auto first = models::generate(model, {1, 2, 3}, {.count = 20, .temperature = 1, .seed = 5});
  CHECK(first.size() == 20);
  CHECK(first == models::generate(model, {1, 2, 3}, {.count = 20, .temperature = 1, .seed = 5}));
  CHECK(first != models::generate(model, {1, 2, 3}, {.count = 20, .temperature = 1, .seed = 6}));
  CHECK_THROWS_AS(models::generate(model, models::TokenText{}, {}), Error);
}
