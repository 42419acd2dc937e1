// Dropout's random numbers depend on the samples, rows and calls.
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/tape.hpp"
#include "trireme/ops/pointwise/operators.hpp"

using namespace trireme;

TEST_CASE("dropout depends on the global index of a sample, not on how samples are split") {
  const auto x = Tensor<float>::full({4, 50}, 1);
  const auto run = [](const Tensor<float>& input, std::int64_t first_sample, std::uint64_t step) {
    Tape tape({.seed = 3, .step = step, .first_sample = first_sample, .samples = input.dim(0)});
    return dropout(Variable<float>(input), 0.25, "layer").value();
  };
  const auto whole = run(x, 0, 5);
  const auto half = run(x.narrow(2, 2), 2, 5);
  int dropped = 0;
  for (int index = 0; index < 100; ++index) {
    CHECK(half.data()[index] == whole.data()[100 + index]);
    dropped += half.data()[index] == 0;
  }
  CHECK(dropped > 10);
  CHECK(dropped < 45);
  const auto other_step = run(x, 0, 6);
  bool differs = false;
  for (int index = 0; index < 200; ++index) differs |= other_step.data()[index] != whole.data()[index];
  CHECK(differs);
}

TEST_CASE("the n-th call of a stream drops elements of its own, counted over all tapes of a micro-batch") {
  const Variable<float> x(Tensor<float>::full({1, 1000}, 1));
  const auto draw = [&](std::string_view stream = "layer") {
    const auto y = dropout(x, 0.5, stream).value();
    return std::vector<float>(y.span().begin(), y.span().end());
  };
  const auto draw_on_tape = [&](const TapeOptions& at) {
    const Tape tape(at);
    return draw();
  };
  const auto agreement = [](const std::vector<float>& a, const std::vector<float>& b) {
    int same = 0;
    for (std::size_t i = 0; i < a.size(); ++i) same += a[i] == b[i] ? 1 : 0;
    return same;
  };
  const TapeOptions names{.seed = 3, .step = 5, .first_sample = 8, .samples = 1};
  std::vector<std::vector<float>> calls;
  {
    Tape outer(names);
    calls.push_back(draw());
    {
      Tape inner(names);
      calls.push_back(draw());
    }
    calls.push_back(draw());
    outer.suspend();
    CHECK(draw() == std::vector<float>(1000, 1.0F));  // evaluation counts for nothing
    outer.resume();
  }
  calls.push_back(draw_on_tape(names));
  for (std::size_t first = 0; first < calls.size(); ++first) {
    for (std::size_t second = 0; second < first; ++second) {
      CAPTURE(first, second);
      CHECK(agreement(calls[first], calls[second]) == Approx(500).margin(80));
    }
  }

  // Draws of another stream, micro-batch, step or rank change nothing, nor does the order of micro-batches.
  for (int run = 0; run < 2; ++run) {
    const TapeOptions first = names.restarted();
    TapeOptions second = first;
    second.first_sample = 12;
    std::thread([&] { draw_on_tape(first); }).join();
    for (std::size_t call = 0; call < calls.size(); ++call) {
      CAPTURE(call);
      if (run == 1) draw_on_tape(second);
      const Tape tape(first);
      draw("another layer");
      CHECK(draw() == calls[call]);
    }
  }
  TapeOptions next_step = names;
  next_step.step = 6;
  const auto of_next_step = draw_on_tape(next_step);
  CHECK(agreement(of_next_step, calls[0]) == Approx(500).margin(80));
  CHECK(draw_on_tape(next_step.restarted()) == of_next_step);
}

TEST_CASE("threads that a loss starts count on and draw in its layer, in a backward pass too") {
  const auto draw = [] {
    const auto y = dropout(Variable<float>(Tensor<float>::full({1, 1000}, 1)), 0.5, "noise").value();
    return std::vector<float>(y.span().begin(), y.span().end());
  };
  const auto draw_on = [&](const TapeOptions& names) {
    const Tape tape(names);
    return draw();
  };
  using Masks = std::vector<std::vector<float>>;
  const TapeOptions names{.seed = 3, .step = 5, .first_sample = 8, .samples = 1};
  const LayerOfList layer{.number = 1}, inside{.number = 1};
  const auto run = [&](bool on_threads) {
    Masks masks;
    const auto apart = [&](const auto& work) { on_threads ? std::thread(work).join() : work(); };
    const TapeOptions fresh = names.restarted();
    Tape tape(fresh);
    masks.push_back(draw());
    tape.enter_layer(layer);
    const TapeOptions in_layer = *tape.options();
    for (int call = 0; call < 3; ++call) apart([&] { masks.push_back(draw_on(in_layer)); });
    tape.enter_layer(inside);
    masks.push_back(draw_on(in_layer));  // this thread is deeper in the list than the copy
    tape.leave_layer();
    masks.push_back(draw());
    tape.leave_layer();
    apart([&] { masks.push_back(draw_on(in_layer.restarted())); });  // as a backward pass does that computes once more
    return masks;
  };
  Masks alone = run(false);
  CHECK(run(true) == alone);
  CHECK(alone.back() == alone[1]);
  alone.pop_back();
  for (std::size_t a = 0; a < alone.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) CHECK(alone[a] != alone[b]);
  }

  std::vector<Masks> of_ranks(2);  // threads that were given the same options each count for themselves
  std::vector<std::thread> ranks;
  for (Masks& masks : of_ranks) {
    ranks.emplace_back([&] {
      const Tape tape(names);
      for (int call = 0; call < 50; ++call) masks.push_back(draw());
    });
  }
  for (std::thread& rank : ranks) rank.join();
  CHECK(of_ranks.front() == of_ranks.back());
}

TEST_CASE("a tape without options refuses dropout and shows them, unless nothing is dropped") {
  const Variable<float> x(Tensor<float>::full({2, 3}, 1));
  const Tape tape;
  CHECK_THROWS_WITH(dropout(x, 0.5, "layer"),
                    ContainsSubstring("dropout: the tape was opened without TapeOptions") &&
                        ContainsSubstring("Tape tape({.seed = 1, .step = step, .first_sample = first, .samples = count})"));
  CHECK(dropout(x, 0.0, "layer").value().data() == x.value().data());
}

TEST_CASE("rows of a sample are dropped the same however samples are spread, and rows that nobody can name are refused") {
  const auto draw = [](const TapeOptions& at, std::int64_t rows) {
    const Tape tape(at);
    const auto y = dropout(Variable<float>(Tensor<float>::full({rows, 50}, 1)), 0.5, "layer").value();
    return std::vector<float>(y.span().begin(), y.span().end());
  };
  const TapeOptions names{.seed = 3, .step = 5};
  const auto of = [&](std::int64_t first, std::optional<std::int64_t> samples) {
    TapeOptions at = names.restarted();
    at.first_sample = first;
    at.samples = samples;
    return at;
  };
  const auto all = draw(of(0, 8), 24);  // 3 rows a sample
  const auto begin = all.begin();
  CHECK(draw(of(0, 2), 6) == std::vector<float>(begin, begin + 6 * 50));
  CHECK(draw(of(2, 5), 15) == std::vector<float>(begin + 6 * 50, begin + 21 * 50));
  CHECK(draw(of(0, {}), 24) == all);
  CHECK(draw(of(2, 0), 0).empty());
  CHECK_THROWS_WITH(draw(of(2, {}), 6), ContainsSubstring("need the number of samples, which is not given"));
  CHECK_THROWS_WITH(draw(of(2, 4), 6), ContainsSubstring("dropout: 6 rows do not belong to 4 samples"));
  CHECK_THROWS_WITH(draw(of(2, 0), 6), ContainsSubstring("do not belong to 0 samples"));

  const TapeOptions step = of(0, 6);  // 6 rows of 2 samples, taken as 6 samples
  draw(step, 6);
  TapeOptions next = step;
  next.first_sample = 2;
  CHECK_THROWS_WITH(draw(next, 6), ContainsSubstring("samples 2 to 7, and another one of its step has 0 to 5"));
  next.first_sample = 6;
  draw(next, 6);
}
