#include "trireme/autograd/composed/losses.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "comm/expect.hpp"
#include "gradient_check.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/testing/ranks.hpp"

// The expected numbers are PyTorch's (2.x, float64), of mean reductions.
using namespace trireme;
using namespace trireme::tests;
using testing::check_gradients;

namespace {

using Doubles = std::vector<double>;
using LossOf = std::function<Loss<double>(const Inputs&)>;

Tensor<double> doubles(const Shape& shape, const Doubles& values) { return Tensor<double>::from(shape, values); }
Tensor<std::int32_t> integers(const Shape& shape, const std::vector<std::int32_t>& values) {
  return Tensor<std::int32_t>::from(shape, values);
}

const Tensor<double>& x() {
  static const auto tensor = doubles({2, 3}, {0.5, -1.25, 2.0, -0.1, 3.5, 0.75});
  return tensor;
}
const Tensor<double>& y() {
  static const auto tensor = doubles({2, 3}, {1, -0.5, 0.25, -0.5, 2, 1});
  return tensor;
}
const Tensor<double>& z() {
  static const auto tensor = doubles({2, 3}, {0, 0.25, 1, -1.5, 2, 1.5});
  return tensor;
}

void check_close(const Doubles& got, const Doubles& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == Approx(wanted[i]).margin(1e-10));
  }
}

// The mean, and its gradient in each input; then the gradient of the sum by differences.
void check(const LossOf& loss, const std::vector<Tensor<double>>& inputs, double mean, const std::vector<Doubles>& gradients) {
  std::vector<Doubles> found(inputs.size());
  {
    Tape tape;
    Inputs in;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      in.push_back(watch(inputs[i], [&found, i](const Tensor<double>& gradient) { found[i] = elements(gradient); }));
    }
    const auto value = loss(in);
    CHECK(value.mean() == Approx(mean).epsilon(1e-11));
    value.sum.backward(1 / value.target_weight.item());
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) check_close(found[i], gradients[i]);
  expect_passed(check_gradients([&](const Inputs& in) { return loss(in).sum; }, inputs));
}

Tensor<double> ctc_logits() {
  Tensor<double> logits({3, 6, 4});
  for (std::int64_t i = 0; i < logits.numel(); ++i) logits.data()[i] = std::sin(1.7 * static_cast<double>(i));
  return logits;
}

}  // namespace

TEST_CASE("L1, Huber, smooth L1 and focal losses are PyTorch's") {
  const auto t = doubles({2, 3}, {0.25, 1.0, 2.0, 0.0, 1.0, -2.0});
  const auto value = [&](const auto& loss, double mean, const Doubles& gradient) {
    Doubles found;
    Tape tape;
    const auto in = watch(x(), [&found](const Tensor<double>& d) { found = elements(d); });
    const Loss<double> result = loss(Variable<double>(in));
    CHECK(result.mean() == Approx(mean).epsilon(1e-12));
    result.backward();
    check_close(found, gradient);
  };
  const Doubles signs{0.166666666667, -0.166666666667, 0, -0.166666666667, 0.166666666667, 0.166666666667};
  value([&](const auto& in) { return l1_loss(in, t); }, 1.3083333333333333, signs);
  value([&](const auto& in) { return smooth_l1_loss(in, t, 0); }, 1.3083333333333333, signs);
  value([&](const auto& in) { return huber_loss(in, t, 0.5); }, 0.5685416666666666,
        {0.041666666667, -0.083333333333, 0, -0.016666666667, 0.083333333333, 0.083333333333});
  value([&](const auto& in) { return smooth_l1_loss(in, t, 0.5); }, 1.1370833333333332,
        {0.083333333333, -0.166666666667, 0, -0.033333333333, 0.166666666667, 0.166666666667});
  const auto labels = doubles({2, 3}, {0, 1, 1, 0, 0.25, 1});
  value([&](const auto& in) { return sigmoid_focal_loss(in, labels); }, 0.25442883714745995,
        {0.065768977734, -0.036409285853, -0.000202955841, 0.032481860644, 0.046379442575, -0.003629569251});
  value([&](const auto& in) { return sigmoid_focal_loss(in, labels, {.alpha = -1, .gamma = 1.5}); }, 0.5780255470903491,
        {0.096098487898, -0.146086077783, -0.001967927642, 0.053608535021, 0.083837791195, -0.021653151223});
  value([&](const auto& in) { return sigmoid_focal_loss(in, labels, {.alpha = 0.3, .gamma = 0}); }, 0.5550833719153533,
        {0.072620255307, -0.038864993059, -0.005960146101, 0.055419094794, 0.072068776925, -0.016041065041});

  const auto at = random({3, 7}, 1), target = random({3, 7}, 2);
  expect_passed(check_gradients([&](const Inputs& in) { return huber_loss(in[0], target, 0.7).sum; }, {at}));
  expect_passed(check_gradients([&](const Inputs& in) { return smooth_l1_loss(in[0], target, 0.7).sum; }, {at}));
  expect_passed(check_gradients([&](const Inputs& in) { return l1_loss(in[0], target).sum; }, {at}));
  CHECK_THROWS_WITH(huber_loss(Variable<double>(at), target, 0), "elementwise_loss: delta is 0, but must be above 0");
  CHECK_THROWS_WITH(smooth_l1_loss(Variable<double>(at), target, -1), "elementwise_loss: beta is -1, but must not be below 0");
  CHECK_THROWS_WITH(sigmoid_focal_loss(Variable<double>(at), target, {.alpha = 2}),
                    "elementwise_loss: alpha is 2 and gamma 2, but must be at most 1 and at least 0");
  CHECK_THROWS_WITH(l1_loss(Variable<double>(at), y()), "elementwise_loss: target has shape [2, 3], but needs [3, 7]");
}

TEST_CASE("a focal loss of certain predictions is finite") {
  const auto sure = Tensor<float>::from({4}, {200, -200, 200, -200});
  const auto labels = Tensor<float>::from({4}, {1, 0, 0, 1});
  Tape tape;
  std::vector<float> gradient;
  const auto in = watch(sure, [&](const Tensor<float>& d) { gradient = elements(d); });
  const auto loss = sigmoid_focal_loss(Variable<float>(in), labels, {.alpha = -1, .gamma = 0.5});
  CHECK(loss.mean() == Approx(100));
  loss.sum.backward();
  CHECK(gradient == std::vector<float>{0, 0, 1, -1});
}

TEST_CASE("cross-entropy with distributions as targets is PyTorch's") {
  const auto p = doubles({2, 3}, {0.2, 0.5, 0.3, 0.0, 0.9, 0.1});
  check([&](const Inputs& in) { return cross_entropy(in[0], p); }, {x()}, 1.2599736312509895,
        {{-0.011589908946, -0.234636629837, 0.246226538783, 0.012519442288, 0.008189483974, -0.020708926262}});
  const SoftTargetOptions<double, Cpu> options{.label_smoothing = 0.1, .class_weight = doubles({3}, {1, 2, 0.5})};
  check([&](const Inputs& in) { return cross_entropy(in[0], p, options); }, {x()}, 2.108304740147555,
        {{0.011066104587, -0.462874445399, 0.451808340813, 0.005638806344, -0.02699240272, 0.021353596376}});
  CHECK_THROWS_WITH(cross_entropy(Variable<double>(x()), doubles({3, 2}, {0, 1, 0, 1, 0, 1})),
                    "cross_entropy: probabilities [3, 2] for logits [2, 3]");
  CHECK_THROWS_WITH(cross_entropy(Variable<double>(x()), p, {.label_smoothing = 2}),
                    "cross_entropy: label_smoothing is 2, but must lie in [0, 1]");
}

TEST_CASE("cross-entropy with distributions ignores the rows that are not counted") {
  const auto p = doubles({2, 3}, {0.2, 0.5, 0.3, 0.0, 0.9, 0.1});
  const auto counted = Tensor<bool>::from({2}, {false, true});
  const SoftTargetOptions<double, Cpu> options{.label_smoothing = 0.1, .counted = counted};
  const auto second = [&](const Inputs& in) {
    return cross_entropy(narrow(in[0], 0, 1, 1), p.narrow(1, 1), {.label_smoothing = 0.1});
  };
  const auto evaluate = [](const auto& loss) {
    std::vector<double> gradient;
    const Tape tape;
    const auto in = watch(x(), [&](const Tensor<double>& d) { gradient = elements(d); });
    const Loss<double> found = loss(Inputs{in});
    found.sum.backward();
    gradient.push_back(found.mean());
    gradient.push_back(found.target_weight.item());
    return gradient;
  };
  const auto got = evaluate([&](const Inputs& in) { return cross_entropy(in[0], p, options); });
  CHECK(got == evaluate(second));
  CHECK(got[0] == 0);
  Tensor<double> broken = x().clone();
  broken.at(0, 1) = std::nan("");
  std::vector<double> gradient;
  {
    const Tape tape;
    const auto in = watch(broken, [&](const Tensor<double>& d) { gradient = elements(d); });
    const Loss<double> loss = cross_entropy(in, p, options);
    loss.sum.backward();
    gradient.insert(gradient.end(), {loss.mean(), 1});
  }
  CHECK(gradient == got);  // whatever lies in rows that do not count
  CHECK(cross_entropy(Variable<double>(x()), p, options).nominal_targets == 2);
  CHECK(cross_entropy(Variable<double>(x()), p, {.counted = Tensor<bool>::from({2}, {false, false})}).mean() == 0);
  CHECK_THROWS_WITH(cross_entropy(Variable<double>(x()), p, {.counted = Tensor<bool>::from({1}, {true})}),
                    "cross_entropy: counted has shape [1] for logits [2, 3]");
}

TEST_CASE("NLL of log-probabilities is PyTorch's") {
  const auto logits = Variable<double>(x());
  const auto at = log_softmax(logits).value();
  check(
      [](const Inputs& in) {
        return nll_loss(in[0], integers({2}, {2, 0}));
      },
      {at}, 1.9599736312509894, {{0, 0, -0.5, -0.5, 0, 0}});
  const NllOptions<double, Cpu> weighted{.class_weight = doubles({3}, {1, 2, 0.5})};
  check(
      [&](const Inputs& in) {
        return nll_loss(in[0], integers({2}, {2, 1}), weighted);
      },
      {at}, 0.11638462014036352, {{0, 0, -0.2, 0, -0.8, 0}});
  check(
      [](const Inputs& in) {
        return nll_loss(in[0], integers({2}, {2, 0}), {.ignore_index = 0});
      },
      {at}, 0.23262198310203266, {{0, 0, -1, 0, 0, 0}});
  const auto none = nll_loss(Variable<double>(at), integers({2}, {-100, -100}));
  CHECK(none.target_weight.item() == 0);
  CHECK(none.mean() == 0);
  CHECK(none.nominal_targets == 2);
  CHECK_THROWS_WITH(nll_loss(Variable<double>(at), integers({2}, {0, 3})),
                    "nll_loss: the target of row 1 is 3, but must lie in [0, 3) or be -100");
  CHECK_THROWS_WITH(nll_loss(Variable<double>(at), integers({3}, {0, 1, 2})),
                    "nll_loss: 3 targets for log-probabilities [2, 3]");
  // A log-probability of -infinity of another class than the target changes nothing.
  const auto sure = doubles({1, 2}, {0, -std::numeric_limits<double>::infinity()});
  CHECK(nll_loss(Variable<double>(sure), integers({1}, {0})).mean() == 0);
}

TEST_CASE("cosine embedding and cosine similarity are PyTorch's") {
  check(
      [](const Inputs& in) {
        return cosine_embedding_loss(in[0], in[1], integers({2}, {1, -1}), 0.1);
      },
      {x(), y()}, 0.6311678608067797,
      {{-0.155720540972, 0.02725109467, 0.055962069412, -0.026763080436, -0.007865553495, 0.033137505587},
       {0.133613785602, 0.114218236079, -0.30601867025, 0.039175854003, 0.032211257736, -0.04483458847}});
  check(
      [](const Inputs& in) {
        return cosine_embedding_loss(in[0], in[1], integers({2}, {-1, 1}), 0.1);
      },
      {x(), y()}, 0.2688321391932204,
      {{0.155720540972, -0.02725109467, -0.055962069412, 0.026763080436, 0.007865553495, -0.033137505587},
       {-0.133613785602, -0.114218236079, 0.30601867025, -0.039175854003, -0.032211257736, 0.04483458847}});
  const auto cosines = cosine_similarity(Variable<double>(x()), Variable<double>(y()));
  CHECK(cosines.shape() == Shape{2});
  check_close(elements(cosines.value()), {0.588331668862, 0.950667390475});
  check_close(elements(normalize(Variable<double>(x())).value()),
              {0.207390338946, -0.518475847365, 0.829561355784, -0.027926315882, 0.977421055867, 0.209447369114});
  CHECK_THROWS_WITH(cosine_embedding_loss(Variable<double>(x()), Variable<double>(y()), integers({2}, {1, 0})),
                    "cosine_embedding_loss: a target is 0, but must be 1 or -1");
  CHECK_THROWS_WITH(cosine_similarity(Variable<double>(x()), Variable<double>(random({2, 4}, 1))),
                    "cosine_similarity: the operands have the shapes [2, 3] and [2, 4], but must have the same");
  // Zeros have no direction, but gradients are finite.
  Tape tape;
  Doubles gradient;
  const auto zeros = watch(Tensor<double>::zeros({1, 2}), [&](const Tensor<double>& d) { gradient = elements(d); });
  sum(cosine_similarity(zeros, Variable<double>(doubles({1, 2}, {3, 4})))).backward();
  CHECK(gradient[0] == Approx(0.6e8));
}

TEST_CASE("triplet margin loss is PyTorch's") {
  check([](const Inputs& in) { return triplet_margin_loss(in[0], in[1], in[2]); }, {x(), y(), z()}, 0.7427434430760278,
        {{-0.26063074483, 0.210391683688, 0.177239131972, -0.19323127626, 0.133660720684, 0.092160417405},
         {0.126999856613, 0.190499911919, -0.444500641146, -0.12719283325, -0.47697225024, 0.079495004062},
         {0.133630888217, -0.400891595607, 0.267261509174, 0.32042410951, 0.343311529556, -0.171655421466}});
  check([](const Inputs& in) { return triplet_margin_loss(in[0], in[1], in[2], {.margin = 2, .swap = true}); }, {x(), y(), z()},
        2.4825748622576302,
        {{-0.126999856613, -0.190499911919, 0.444500641146, 0.12719283325, 0.47697225024, -0.079495004062},
         {-0.215997737374, 0.447747507165, -0.187253045901, -0.574406697078, -0.476972697453, 0.303101265155},
         {0.342997593987, -0.257247595245, -0.257247595245, 0.447213863828, 4.47213e-07, -0.223606261094}});
}

TEST_CASE("losses refuse undefined operands and take batches of none") {
  const Variable<double> none, rows(x());
  const auto index = integers({2}, {1, 1});
  const auto refused = [](const auto& call, const std::string& text) {
    CHECK_THROWS_WITH(call(), ContainsSubstring(text + " is undefined"));
  };
  refused([&] { l1_loss(none, x()); }, "l1_loss: operand 1 of 2");
  refused([&] { huber_loss(rows, {}); }, "huber_loss: operand 2 of 2");
  refused([&] { sigmoid_focal_loss(rows, {}); }, "sigmoid_focal_loss: operand 2 of 2");
  refused([&] { nll_loss(none, index); }, "nll_loss: operand 1 of 2");
  refused([&] { nll_loss(rows, {}); }, "nll_loss: operand 2 of 2");
  refused([&] { cross_entropy(none, x()); }, "cross_entropy: operand 1 of 2");
  refused([&] { cross_entropy(rows, Tensor<double>()); }, "cross_entropy: operand 2 of 2");
  refused([&] { cosine_embedding_loss(rows, none, index); }, "cosine_embedding_loss: operand 2 of 3");
  refused([&] { triplet_margin_loss(rows, rows, none); }, "triplet_margin_loss: operand 2 of 2");
  refused([&] { info_nce_loss(none, rows); }, "info_nce_loss: operand 1 of 2");
  refused([&] { dice_loss(rows, {}); }, "dice_loss: operand 2 of 2");
  refused([&] { softmax_dice_loss(rows, {}); }, "softmax_dice_loss: operand 2 of 2");
  refused([&] { mse_loss(rows, none); }, "mse_loss: operand 2 of 2");
  refused([&] { ctc_loss(none, index, index, index); }, "ctc_loss: operand 1 of 4");
  refused([&] { normalize(none); }, "normalize: operand 1 of 1");

  const Variable<double> empty(Tensor<double>::zeros({0, 3}));
  const auto no_index = integers({0}, {});
  CHECK(l1_loss(empty, empty.value()).mean() == 0);
  CHECK(nll_loss(empty, no_index).mean() == 0);
  CHECK(cross_entropy(empty, empty.value()).mean() == 0);
  CHECK(cosine_embedding_loss(empty, empty, no_index).mean() == 0);
  CHECK(triplet_margin_loss(empty, empty, empty).mean() == 0);
  CHECK(dice_loss(empty, empty.value()).mean() == 0);
  CHECK(softmax_dice_loss(empty, no_index).mean() == 0);
  CHECK(mse_loss(empty, empty).mean() == 0);
  CHECK_THROWS_WITH(normalize(Variable<double>(Tensor<double>::zeros({}))),
                    "normalize: an operand is a scalar, but needs rows [..., width]");
}

TEST_CASE("dice loss over each sample") {
  const auto t = doubles({2, 3}, {0, 1, 1, 0, 0.25, 1});
  check([&](const Inputs& in) { return dice_loss(in[0], t); }, {x()}, 0.33570139225034,
        {{0.016871880259, -0.024200615962, -0.014678446986, 0.018525714507, 0.000487796939, -0.033618811176}});
  const auto pixels = random({2, 2, 2, 3}, 1);
  CHECK(dice_loss(Variable<double>(pixels), Tensor<double>::zeros({2, 2, 2, 3})).nominal_targets == 2);
}

TEST_CASE("dice loss of classes leaves out what is ignored") {
  const auto logits = random({2, 4, 3}, 1);
  const auto targets = integers({2, 4}, {0, 2, -100, 1, 2, 2, 0, -100});
  double expected = 0;
  for (std::int64_t sample = 0; sample < 2; ++sample) {
    for (std::int64_t c = 0; c < 3; ++c) {
      double overlap = 0, total = 0;
      for (std::int64_t place = 0; place < 4; ++place) {
        const std::int32_t target = targets.at(sample, place);
        if (target < 0) continue;
        double sum = 0;
        for (std::int64_t j = 0; j < 3; ++j) sum += std::exp(logits.at(sample, place, j));
        const double p = std::exp(logits.at(sample, place, c)) / sum, t = target == c ? 1 : 0;
        overlap += p * t;
        total += p + t;
      }
      expected += (1 - (2 * overlap + 0.5) / (total + 0.5)) / 6;
    }
  }
  CHECK(softmax_dice_loss(Variable<double>(logits), targets, {.smoothing = 0.5}).mean() == Approx(expected));
  expect_passed(check_gradients([&](const Inputs& in) { return softmax_dice_loss(in[0], targets).sum; }, {logits}));
  // A class that is ignored is no target, though it has a probability.
  const auto other = integers({2, 4}, {0, 2, 1, 1, 2, 2, 0, 1});
  expect_passed(
      check_gradients([&](const Inputs& in) { return softmax_dice_loss(in[0], other, {.ignore_index = 1}).sum; }, {logits}));
  CHECK_THROWS_WITH(softmax_dice_loss(Variable<double>(logits), integers({2, 4}, {0, 2, 3, 1, 2, 2, 0, 0})),
                    ContainsSubstring("the target of place 2 is 3, but must lie in [0, 3) or be -100"));
}

TEST_CASE("the squared error of two Variables gives both gradients") {
  expect_passed(check_gradients([](const Inputs& in) { return mse_loss(in[0], in[1]).sum; }, {x(), y()}));
  CHECK(mse_loss(Variable<double>(x()), Variable<double>(y())).mean() == Approx(mse_loss(Variable<double>(x()), y()).mean()));
  CHECK_THROWS_WITH(mse_loss(Variable<double>(x()), Variable<double>(random({2}, 1))),
                    ContainsSubstring("mse_loss: the operands have the shapes"));
}

TEST_CASE("KL divergence of nan and of probabilities below 0 is nan, that of 0 is 0") {
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto kl = [](double log_probability, double target, bool log_target) {
    return kl_divergence(Variable<double>(doubles({1}, {log_probability})), doubles({1}, {target}), log_target).mean();
  };
  CHECK(std::isnan(kl(-1, nan, false)));
  CHECK(std::isnan(kl(-1, -0.5, false)));
  CHECK(std::isnan(kl(-1, nan, true)));
  CHECK(std::isnan(kl(nan, 0, false)));
  CHECK(std::isnan(kl(nan, -infinity, true)));
  CHECK(kl(-infinity, 0, false) == 0);
  CHECK(kl(-1, -infinity, true) == 0);
  CHECK(kl(-infinity, 0.5, false) == infinity);
}

TEST_CASE("losses of half types are those of float") {
  const auto halves = [](std::uint64_t stream) { return Variable<bfloat16>(random<bfloat16>({4, 5}, stream)); };
  const auto a = halves(1), b = halves(2), c = halves(3);
  const auto wide = [](const Variable<bfloat16>& v) { return cast<float>(v); };
  CHECK(triplet_margin_loss(a, b, c).mean() == triplet_margin_loss(wide(a), wide(b), wide(c)).mean());
  CHECK(info_nce_loss(a, b).mean() == info_nce_loss(wide(a), wide(b)).mean());
  const auto targets = integers({4}, {0, 4, 1, -100});
  CHECK(nll_loss(a, targets).mean() == nll_loss(wide(a), targets).mean());
  CHECK(normalize(a).shape() == a.shape());
}

TEST_CASE("InfoNCE, alone and with the keys of all ranks") {
  check([](const Inputs& in) { return info_nce_loss(in[0], in[1], {.temperature = 0.5}); }, {x(), y()}, 0.13768356009541557,
        {{-0.074260899168, 0.073705331344, 0.064631056882, 0.018317709962, 0.000278224962, 0.00114397817},
         {0.06855887313, 0.086985490892, -0.100264510737, 0.009882617348, -0.037227145785, 0.079395600244}});
  CHECK_THROWS_WITH(info_nce_loss(Variable<double>(x()), Variable<double>(y()), {.temperature = 0}),
                    "info_nce_loss: the temperature is 0, but must be above 0");

  // Ranks with parts of a batch compute the gradients of the whole batch.
  const auto queries = random({6, 5}, 1), keys = random({6, 5}, 2);
  Doubles of_queries, of_keys;
  double total = 0;
  {
    Tape tape;
    const auto q = watch(queries, [&](const Tensor<double>& d) { of_queries = elements(d); });
    const auto k = watch(keys, [&](const Tensor<double>& d) { of_keys = elements(d); });
    const auto loss = info_nce_loss(q, k);
    total = static_cast<double>(loss.sum.value().item());
    loss.sum.backward();
  }
  for (const int ranks : {1, 2, 3}) {
    testing::run_ranks(ranks, [&](const Group& world) {
      const std::int64_t rows = 6 / ranks, first = world.rank() * rows;
      Doubles own_q, own_k;
      Tape tape;
      const auto q = watch(queries.narrow(first, rows), [&](const Tensor<double>& d) { own_q = elements(d); });
      const auto k = watch(keys.narrow(first, rows), [&](const Tensor<double>& d) { own_k = elements(d); });
      const auto loss = info_nce_loss(q, k, {}, &world);
      std::vector<double> sums{static_cast<double>(loss.sum.value().item())};
      loss.sum.backward();
      world.all_reduce(std::span(sums)).wait_on_host();
      test::expect(std::abs(sums[0] - total) < 1e-10, "loss {} and not {}", sums[0], total);
      for (std::size_t i = 0; i < own_q.size(); ++i) {
        const auto place = static_cast<std::size_t>(first) * 5 + i;
        test::expect(std::abs(own_q[i] - of_queries[place]) < 1e-10, "query {}: {}, not {}", i, own_q[i], of_queries[place]);
        test::expect(std::abs(own_k[i] - of_keys[place]) < 1e-10, "key {}: {}, not {}", i, own_k[i], of_keys[place]);
      }
    });
  }
}

TEST_CASE("CTC is PyTorch's") {
  const auto targets = integers({3, 3}, {1, 2, 2, 3, 1, 0, 2, 0, 0});
  const auto inputs = integers({3}, {6, 4, 5}), labels = integers({3}, {3, 2, 0});
  const auto losses = [&](const Tensor<std::int32_t>& lengths, const ops::CtcOptions& options) {
    return elements(ctc_losses(log_softmax(Variable<double>(ctc_logits())), targets, lengths, labels, options).value());
  };
  check_close(losses(inputs, {.per_label = false}), {5.234618632041, 3.276723341329, 5.126440247358});
  check([&](const Inputs& in) { return ctc_loss(log_softmax(in[0]), targets, inputs, labels); }, {ctc_logits()},
        2.8365582651232764,
        {{0.007616220178,
          -0.034345993838,
          0.017683467094,
          0.009046306567,
          0.013160714941,
          0.000432304253,
          -0.025821997676,
          0.012228978482,
          -0.001665787662,
          0.022291302966,
          -0.039425301184,
          0.01879978588,
          -0.014484033994,
          0.018372356458,
          -0.033216305654,
          0.02932798319,
          -0.034191092176,
          0.011016028399,
          -0.01970112231,
          0.042876186087,
          0.008814648176,
          0.008098835975,
          -0.070805768231,
          0.053892284081,
          -0.01194880209,
          0.011807675571,
          0.039679058764,
          -0.039537932245,
          -0.001330745585,
          0.005873342464,
          0.065931052228,
          -0.070473649107,
          -0.015233975127,
          -0.043310937743,
          0.088381216263,
          -0.029836303393,
          -0.005360133001,
          -0.111657093965,
          0.091983216278,
          0.025034010688,
          0,
          0,
          0,
          0,
          0,
          0,
          0,
          0,
          -0.270116301618,
          0.186186881182,
          0.057501856555,
          0.026427563881,
          -0.229324691398,
          0.158775839313,
          0.035989324891,
          0.034559527193,
          -0.184146627329,
          0.105695829879,
          0.025910702248,
          0.052540095202,
          -0.165638276276,
          0.060333132562,
          0.02309380352,
          0.082211340195,
          -0.18478933736,
          0.035445762846,
          0.027224533833,
          0.122119040681,
          0,
          0,
          0,
          0}});
  const auto other_blank = integers({3, 3}, {1, 2, 2, 0, 1, 0, 2, 0, 0});
  check_close(elements(ctc_losses(log_softmax(Variable<double>(ctc_logits())), other_blank, inputs, labels,
                                  {.blank = 3, .per_label = false})
                           .value()),
              {6.260708254455, 3.715622243061, 9.052757976944});

  // Three rows can't hold a label, a blank and the same label again after another one.
  const auto short_inputs = integers({3}, {3, 4, 5});
  CHECK(losses(short_inputs, {})[0] == std::numeric_limits<double>::infinity());
  CHECK(losses(short_inputs, {.zero_infinity = true})[0] == 0);
  const auto gradient_of = [&](bool zero_infinity) {
    Doubles gradient;
    Tape tape;
    const auto at = watch(ctc_logits(), [&](const Tensor<double>& d) { gradient = elements(d); });
    ctc_loss(log_softmax(at), targets, short_inputs, labels, {.zero_infinity = zero_infinity}).sum.backward();
    return gradient;
  };
  CHECK(std::isnan(gradient_of(false)[0]));
  const auto zeroed = gradient_of(true);
  CHECK(zeroed[0] == 0);
  CHECK(std::abs(zeroed[24]) > 0);
  CHECK_FALSE(std::isnan(zeroed[24]));
}

TEST_CASE("CTC refuses lengths and labels that do not fit, and takes empty ones") {
  const Variable<double> x = log_softmax(Variable<double>(ctc_logits()));
  const auto with = [&](const std::vector<std::int32_t>& targets, const std::vector<std::int32_t>& inputs,
                        const std::vector<std::int32_t>& labels) {
    return ctc_loss(x, integers({3, static_cast<std::int64_t>(targets.size()) / 3}, targets), integers({3}, inputs),
                    integers({3}, labels))
        .mean();
  };
  CHECK_THROWS_WITH(with({1, 2, 3}, {6, 7, 6}, {1, 1, 1}),
                    "ctc_loss: the input length of sample 1 is 7, but must lie in [0, 6]");
  CHECK_THROWS_WITH(with({1, 2, 3}, {6, 6, 6}, {1, 1, 2}),
                    "ctc_loss: the target length of sample 2 is 2, but must lie in [0, 1]");
  CHECK_THROWS_WITH(with({1, 2, 4}, {6, 6, 6}, {1, 1, 1}),
                    "ctc_loss: a label of sample 2 is no class in [0, 4), or the blank, 0");
  CHECK_THROWS_WITH(with({0, 2, 3}, {6, 6, 6}, {1, 1, 1}),
                    "ctc_loss: a label of sample 0 is no class in [0, 4), or the blank, 0");
  CHECK(with({}, {0, 0, 0}, {0, 0, 0}) == 0);
  const double blanks = with({}, {6, 4, 5}, {0, 0, 0});
  CHECK(std::isfinite(blanks));
  CHECK(with({9, 9, 9}, {6, 4, 5}, {0, 0, 0}) == blanks);  // what is not used is not read
}
