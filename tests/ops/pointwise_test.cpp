#include <fmt/format.h>

#include <limits>
#include <vector>

#include "ops/compare.hpp"
#include "ops/threads.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/core/log.hpp"
#include "trireme/ops/pointwise/operators.hpp"
#include "trireme/tensor/print.hpp"

// Expected numbers are PyTorch's, in double.
using namespace trireme;
using ops::Binary;
using ops::Doubles;
using ops::Unary;

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double sixth = 1.0 / 6;

struct UnaryCase {
  Unary kind;
  Doubles value;
  Doubles gradient;
};
struct BinaryCase {
  Binary kind;
  Doubles value;
  Doubles left;
  Doubles right;
};

const Doubles points{-8, -3, -2.5, -1, -0.5, 0, 0.5, 1, 2.5, 3, 6, 7};
const std::vector<UnaryCase> unary_cases{
    {Unary::abs, {8, 3, 2.5, 1, 0.5, 0, 0.5, 1, 2.5, 3, 6, 7}, {-1, -1, -1, -1, -1, 0, 1, 1, 1, 1, 1, 1}},
    {Unary::neg, {8, 3, 2.5, 1, 0.5, -0, -0.5, -1, -2.5, -3, -6, -7}, {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}},
    {Unary::sign, {-1, -1, -1, -1, -1, 0, 1, 1, 1, 1, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {Unary::clamp, {-1, -1, -1, -1, -0.5, 0, 0.5, 1, 2.5, 2.5, 2.5, 2.5}, {0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0}},
    {Unary::square, {64, 9, 6.25, 1, 0.25, 0, 0.25, 1, 6.25, 9, 36, 49}, {-16, -6, -5, -2, -1, 0, 1, 2, 5, 6, 12, 14}},
    {Unary::exp,
     {0.0003354626279025, 0.04978706836786, 0.0820849986239, 0.3678794411714, 0.6065306597126, 1, 1.6487212707, 2.718281828459,
      12.1824939607, 20.08553692319, 403.4287934927, 1096.633158428},
     {0.0003354626279025, 0.04978706836786, 0.0820849986239, 0.3678794411714, 0.6065306597126, 1, 1.6487212707, 2.718281828459,
      12.1824939607, 20.08553692319, 403.4287934927, 1096.633158428}},
    {Unary::expm1,
     {-0.9996645373721, -0.9502129316321, -0.9179150013761, -0.6321205588286, -0.3934693402874, 0, 0.6487212707001,
      1.718281828459, 11.1824939607, 19.08553692319, 402.4287934927, 1095.633158428},
     {0.0003354626279025, 0.04978706836786, 0.0820849986239, 0.3678794411714, 0.6065306597126, 1, 1.6487212707, 2.718281828459,
      12.1824939607, 20.08553692319, 403.4287934927, 1096.633158428}},
    {Unary::log,
     {no_number, no_number, no_number, no_number, no_number, -infinity, -0.6931471805599, 0, 0.9162907318742, 1.098612288668,
      1.791759469228, 1.945910149055},
     {-0.125, -0.3333333333333, -0.4, -1, -2, infinity, 2, 1, 0.4, 0.3333333333333, 0.1666666666667, 0.1428571428571}},
    {Unary::log1p,
     {no_number, no_number, no_number, -infinity, -0.6931471805599, 0, 0.4054651081082, 0.6931471805599, 1.252762968495,
      1.38629436112, 1.945910149055, 2.07944154168},
     {-0.1428571428571, -0.5, -0.6666666666667, infinity, 2, 1, 0.6666666666667, 0.5, 0.2857142857143, 0.25, 0.1428571428571,
      0.125}},
    {Unary::sqrt,
     {no_number, no_number, no_number, no_number, no_number, 0, 0.7071067811865, 1, 1.581138830084, 1.732050807569,
      2.449489742783, 2.645751311065},
     {no_number, no_number, no_number, no_number, no_number, infinity, 0.7071067811865, 0.5, 0.3162277660168, 0.2886751345948,
      0.2041241452319, 0.1889822365046}},
    {Unary::rsqrt,
     {no_number, no_number, no_number, no_number, no_number, infinity, 1.414213562373, 1, 0.6324555320337, 0.5773502691896,
      0.4082482904639, 0.3779644730092},
     {no_number, no_number, no_number, no_number, no_number, -infinity, -1.414213562373, -0.5, -0.1264911064067,
      -0.09622504486494, -0.03402069087199, -0.0269974623578}},
    {Unary::reciprocal,
     {-0.125, -0.3333333333333, -0.4, -1, -2, infinity, 2, 1, 0.4, 0.3333333333333, 0.1666666666667, 0.1428571428571},
     {-0.015625, -0.1111111111111, -0.16, -1, -4, -infinity, -4, -1, -0.16, -0.1111111111111, -0.02777777777778,
      -0.02040816326531}},
    {Unary::sin,
     {-0.9893582466234, -0.1411200080599, -0.598472144104, -0.8414709848079, -0.4794255386042, 0, 0.4794255386042,
      0.8414709848079, 0.598472144104, 0.1411200080599, -0.2794154981989, 0.6569865987188},
     {-0.1455000338086, -0.9899924966004, -0.8011436155469, 0.5403023058681, 0.8775825618904, 1, 0.8775825618904,
      0.5403023058681, -0.8011436155469, -0.9899924966004, 0.9601702866504, 0.7539022543433}},
    {Unary::cos,
     {-0.1455000338086, -0.9899924966004, -0.8011436155469, 0.5403023058681, 0.8775825618904, 1, 0.8775825618904,
      0.5403023058681, -0.8011436155469, -0.9899924966004, 0.9601702866504, 0.7539022543433},
     {0.9893582466234, 0.1411200080599, 0.598472144104, 0.8414709848079, 0.4794255386042, -0, -0.4794255386042,
      -0.8414709848079, -0.598472144104, -0.1411200080599, 0.2794154981989, -0.6569865987188}},
    {Unary::erf,
     {-1, -0.999977909503, -0.9995930479826, -0.8427007929497, -0.520499877813, 0, 0.520499877813, 0.8427007929497,
      0.9995930479826, 0.999977909503, 1, 1},
     {1.809706796856e-28, 0.0001392530519467, 0.002178284230353, 0.4151074974206, 0.8787825789354, 1.128379167096,
      0.8787825789354, 0.4151074974206, 0.002178284230353, 0.0001392530519467, 2.617301239249e-16, 5.915962958003e-22}},
    {Unary::floor, {-8, -3, -3, -1, -1, 0, 0, 1, 2, 3, 6, 7}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {Unary::ceil, {-8, -3, -2, -1, -0, 0, 1, 1, 3, 3, 6, 7}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {Unary::round, {-8, -3, -2, -1, -0, 0, 0, 1, 2, 3, 6, 7}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {Unary::elu,
     {-0.6997651761605, -0.6651490521425, -0.6425405009633, -0.44248439118, -0.2754285382012, 0, 0.5, 1, 2.5, 3, 6, 7},
     {0.0002348238395318, 0.0348509478575, 0.05745949903673, 0.25751560882, 0.4245714617988, 0.7, 1, 1, 1, 1, 1, 1}},
    {Unary::selu,
     {-1.757509564222, -1.670568728767, -1.613785758873, -1.111330737813, -0.6917581878029, 0, 0.5253504936777, 1.050700987355,
      2.626752468389, 3.152102962066, 6.304205924133, 7.354906911488},
     {0.0005897766249943, 0.08753061208026, 0.1443135819741, 0.6467686030348, 1.066341153045, 1.758099340847, 1.050700987355,
      1.050700987355, 1.050700987355, 1.050700987355, 1.050700987355, 1.050700987355}},
    {Unary::mish,
     {-0.002683250882547, -0.1456474612756, -0.1968162039065, -0.3034014613741, -0.2207437746517, 0, 0.3752452113049,
      0.8650983882673, 2.471392304558, 2.986535004968, 5.999926634065, 6.99998837981},
     {-0.002347394381605, -0.09339311453232, -0.1097435727502, 0.0592167558774, 0.2895106779135, 0.6, 0.8864243753577,
      1.0490362201, 1.041129530131, 1.021106910929, 1.000134140506, 1.000021559161}},
    {Unary::hardswish,
     {-0, -0, -0.2083333333333, -0.3333333333333, -0.2083333333333, 0, 0.2916666666667, 0.6666666666667, 2.291666666667, 3, 6,
      7},
     {0, 0, -0.3333333333333, 0.1666666666667, 0.3333333333333, 0.5, 0.6666666666667, 0.8333333333333, 1.333333333333, 1, 1,
      1}},
    {Unary::hardsigmoid,
     {0, 0, 0.08333333333333, 0.3333333333333, 0.4166666666667, 0.5, 0.5833333333333, 0.6666666666667, 0.9166666666667, 1, 1,
      1},
     {0, 0, sixth, sixth, sixth, sixth, sixth, sixth, sixth, 0, 0, 0}},
    {Unary::relu6, {0, 0, 0, 0, 0, 0, 0.5, 1, 2.5, 3, 6, 6}, {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0}},
    {Unary::softsign,
     {-0.8888888888889, -0.75, -0.7142857142857, -0.5, -0.3333333333333, 0, 0.3333333333333, 0.5, 0.7142857142857, 0.75,
      0.8571428571429, 0.875},
     {0.01234567901235, 0.0625, 0.08163265306122, 0.25, 0.4444444444444, 1, 0.4444444444444, 0.25, 0.08163265306122, 0.0625,
      0.02040816326531, 0.015625}},
    {Unary::logsigmoid,
     {-8.000335406373, -3.048587351574, -2.578889734293, -1.313261687518, -0.9740769841801, -0.6931471805599, -0.4740769841801,
      -0.3132616875182, -0.07888973429255, -0.04858735157374, -0.00247568513773, -0.0009114664537742},
     {0.9996646498695, 0.9525741268224, 0.9241418199788, 0.73105857863, 0.6224593312019, 0.5, 0.3775406687981, 0.26894142137,
      0.07585818002124, 0.04742587317757, 0.002472623156635, 0.0009110511944006}},
};

const Doubles left_points{2, 2, 0, 0, -3, no_number, 1, 0, -2};
const Doubles right_points{3, 2, 2, 0, 2, 1, no_number, -1, 3};
const std::vector<BinaryCase> binary_cases{
    {Binary::minimum,
     {2, 2, 0, 0, -3, no_number, no_number, -1, -2},
     {1, 0.5, 1, 0.5, 1, 1, 1, 0, 1},
     {0, 0.5, 0, 0.5, 0, 1, 1, 1, 0}},
    {Binary::maximum,
     {3, 2, 2, 0, 2, no_number, no_number, 0, 3},
     {0, 0.5, 0, 0.5, 0, 1, 1, 1, 0},
     {1, 0.5, 1, 0.5, 1, 1, 1, 0, 1}},
    {Binary::pow,
     {8, 4, 0, 1, 9, no_number, 1, infinity, -8},
     {12, 4, 0, 0, -6, 1, no_number, -infinity, 12},
     {5.54517744448, 2.77258872224, 0, 0, no_number, no_number, 0, -infinity, no_number}},
    {Binary::divide,
     {0.6666666666667, 1, 0, no_number, -1.5, no_number, no_number, -0, -0.6666666666667},
     {0.3333333333333, 0.5, 0.5, infinity, 0.5, 1, no_number, -1, 0.3333333333333},
     {-0.2222222222222, -0.5, -0, no_number, 0.75, no_number, no_number, -0, 0.2222222222222}},
};

template <typename T>
Tensor<T> tensor_of(const Doubles& values) {
  Tensor<T> tensor({static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) tensor.span()[i] = static_cast<T>(static_cast<Accumulate<T>>(values[i]));
  return tensor;
}

// As require_close, with NaN and infinity where they are expected.
template <typename T>
void require_equal(const Tensor<T>& got, const Doubles& expected, double tolerance) {
  REQUIRE(static_cast<std::size_t>(got.numel()) == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto value = static_cast<double>(got.span()[i]);
    const double wanted = expected[i];
    const bool same = std::isnan(wanted)   ? std::isnan(value)
                      : std::isinf(wanted) ? value == wanted
                                           : std::abs(value - wanted) <= tolerance * (1 + std::abs(wanted));
    INFO("element " << i << ": " << value << ", expected " << wanted);
    REQUIRE(same);
  }
}

template <typename T>
double precision() {
  return std::is_same_v<T, bfloat16> ? 0x1p-7 : std::is_same_v<T, float16> ? 0x1p-10 : sizeof(T) == 4 ? 1e-6 : 1e-12;
}

ops::UnaryNumbers numbers_of(Unary kind) {
  if (kind == Unary::clamp) return {.first = -1, .second = 2.5};
  if (kind == Unary::elu) return {.first = 0.7};
  return {};
}

// The element of a tensor that belongs to one of a result of the shape `result`.
template <typename T>
T repeated(const Tensor<T>& x, const Shape& result, std::int64_t index) {
  std::int64_t place = 0;
  std::int64_t step = 1;
  for (int dim = -1; - dim <= result.size(); --dim) {
    if (-dim <= x.shape().size()) {
      if (x.shape()[dim] != 1) place += index % result[dim] * step;
      step *= x.shape()[dim];
    }
    index /= result[dim];
  }
  return x.data()[place];
}

const std::vector<std::pair<Shape, Shape>> pairs{{{}, {}},
                                                 {{5}, {}},
                                                 {{}, {2, 3}},
                                                 {{2, 3}, {3}},
                                                 {{2, 3}, {2, 1}},
                                                 {{2, 1}, {1, 3}},
                                                 {{7, 300}, {300}},
                                                 {{7, 300}, {7, 1}},
                                                 {{3000, 3}, {3}},
                                                 {{1, 2500}, {3, 1}},
                                                 {{2, 1, 3, 1, 2, 1}, {1, 4, 1, 2, 1, 3}},
                                                 {{3, 1, 5, 2}, {2, 3, 4, 1, 2}},
                                                 {{0, 3}, {3}},
                                                 {{2, 0}, {2, 1}},
                                                 {{70000}, {1}},
                                                 {{40, 1, 1000}, {40, 2, 1}}};

}  // namespace

TEMPLATE_TEST_CASE("functions of one operand, and their gradients", "", float, double, bfloat16, float16) {
  using T = TestType;
  const auto x = tensor_of<T>(points);
  const auto dy = tensor_of<T>(Doubles(points.size(), 2));
  for (const UnaryCase& of : unary_cases) {
    CAPTURE(std::string(name_of(of.kind)));
    const auto y = pointwise(of.kind, x, numbers_of(of.kind));
    require_equal(y, of.value, precision<T>());
    Tensor<T> dx(x.shape());
    ops::unary_backward(of.kind, numbers_of(of.kind), x, dy, dx, false);
    Doubles doubled = of.gradient;
    for (double& element : doubled) element *= 2;
    require_equal(dx, doubled, 2 * precision<T>());
    ops::unary_backward(of.kind, numbers_of(of.kind), x, dy, dx, true);
    for (double& element : doubled) element *= 2;
    require_equal(dx, doubled, 4 * precision<T>());
  }
}

TEMPLATE_TEST_CASE("functions of two operands, and their gradients", "", float, double, bfloat16, float16) {
  using T = TestType;
  const auto a = tensor_of<T>(left_points);
  const auto b = tensor_of<T>(right_points);
  const auto dy = tensor_of<T>(Doubles(left_points.size(), 1));
  for (const BinaryCase& of : binary_cases) {
    CAPTURE(std::string(name_of(of.kind)));
    require_equal(pointwise(of.kind, a, b), of.value, precision<T>());
    Tensor<T> gradient(a.shape());
    ops::binary_backward(of.kind, ops::Side::left, a, b, dy, gradient, false);
    require_equal(gradient, of.left, precision<T>());
    ops::binary_backward(of.kind, ops::Side::right, a, b, dy, gradient, false);
    require_equal(gradient, of.right, precision<T>());
  }
}

TEST_CASE("powers with a number") {
  const auto x = tensor_of<double>({-2, 0, 4, 0.25});
  struct Case {
    double exponent;
    Doubles value;
    Doubles gradient;
  };
  for (const auto& [exponent, value, gradient] :
       {Case{0, {1, 1, 1, 1}, {0, 0, 0, 0}}, Case{0.5, {no_number, 0, 2, 0.5}, {no_number, infinity, 0.25, 1}},
        Case{-0.5, {no_number, infinity, 0.5, 2}, {no_number, -infinity, -0.0625, -4}}, Case{1, {-2, 0, 4, 0.25}, {1, 1, 1, 1}},
        Case{2, {4, 0, 16, 0.0625}, {-4, 0, 8, 0.5}}, Case{3, {-8, 0, 64, 0.015625}, {12, 0, 48, 0.1875}},
        Case{-1, {-0.5, infinity, 0.25, 4}, {-0.25, -infinity, -0.0625, -16}},
        Case{1.7, {no_number, 0, 10.55606328618, 0.0947322854069}, {no_number, 0, 4.486326896628, 0.6441795407669}}}) {
    CAPTURE(exponent);
    require_equal(pow(x, exponent), value, 1e-12);
    Tensor<double> dx(x.shape());
    ops::binary_backward(Binary::pow, ops::Side::left, x, exponent, tensor_of<double>(Doubles(4, 1)), dx, false);
    require_equal(dx, gradient, 1e-12);
  }
  require_equal(pow(2, x), {0.25, 1, 16, 1.189207115003}, 1e-12);
}

TEMPLATE_TEST_CASE("operands of several shapes are repeated", "", float, double, bfloat16, float16, std::int32_t,
                   std::int64_t) {
  using T = TestType;
  for (const auto& [left, right] : pairs) {
    CAPTURE(left.str(), right.str());
    const auto a = ops::random_tensor<float>(left, 1, 5);
    const auto b = ops::random_tensor<float>(right, 2, 5);
    const auto as = [](const Tensor<float>& x) {
      Tensor<T> result(x.shape());
      for (std::int64_t i = 0; i < x.numel(); ++i) result.data()[i] = static_cast<T>(x.data()[i]);
      return result;
    };
    const Tensor<T> x = as(a);
    const Tensor<T> y = as(b);
    const auto difference = x - y;
    const auto smaller = minimum(y, x);
    const auto below = x < y;
    const auto chosen = where(below, x, y);
    REQUIRE(difference.shape() == ops::broadcast_shape("test", left, right));
    bool right_numbers = true;
    for (std::int64_t i = 0; i < difference.numel(); ++i) {
      using A = Accumulate<T>;
      const auto of_x = static_cast<A>(repeated(x, difference.shape(), i));
      const auto of_y = static_cast<A>(repeated(y, difference.shape(), i));
      right_numbers = right_numbers && difference.data()[i] == static_cast<T>(of_x - of_y) &&
                      static_cast<A>(smaller.data()[i]) == std::min(of_x, of_y) && below.data()[i] == (of_x < of_y) &&
                      static_cast<A>(chosen.data()[i]) == std::min(of_x, of_y);
    }
    CHECK(right_numbers);
  }
}

TEMPLATE_TEST_CASE("sums over repeated dims do not depend on threads", "", float, double, bfloat16, float16) {
  using T = TestType;
  struct Case {
    Shape from;
    Shape to;
  };
  for (const auto& [from, to] :
       {Case{{200, 300}, {300}}, Case{{200, 300}, {200, 1}}, Case{{200, 300}, {}}, Case{{3, 70, 20}, {3, 1, 20}},
        Case{{3, 70, 600}, {3, 1, 600}}, Case{{2, 3, 2, 3, 2, 3}, {3, 1, 3, 1, 3}}, Case{{4, 5}, {4, 5}},
        Case{{2, 3}, {1, 2, 3}}, Case{{0, 4}, {4}}, Case{{4, 0}, {4, 1}}, Case{{4, 0}, {4, 0}}, Case{{2, 9000}, {2, 1}},
        Case{{1, 6, 1, 5}, {6, 1, 1}}}) {
    if (to.size() > from.size()) continue;
    CAPTURE(from.str(), to.str());
    const auto x = ops::random_tensor<T>(from, 1);
    Doubles expected(static_cast<std::size_t>(to.numel()), 1);
    Tensor<double> places(to);
    for (std::int64_t i = 0; i < to.numel(); ++i) places.data()[i] = static_cast<double>(i);
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      expected[static_cast<std::size_t>(repeated(places, from, i))] -= 2 * static_cast<double>(x.data()[i]);
    }
    Tensor<T> y = Tensor<T>::full(to, T(1.0F));
    with_threads(1, [&] { ops::sum_to_shape(x, y, true, -2); });
    require_equal(y, expected, 100 * precision<T>());
    for (const int threads : {2, 3}) {
      Tensor<T> again = Tensor<T>::full(to, T(1.0F));
      with_threads(threads, [&] { ops::sum_to_shape(x, again, true, -2); });
      ops::require_identical(again, y);
    }
  }
  Tensor<T> y({2});
  CHECK_THROWS_WITH(ops::sum_to_shape(Tensor<T>({3}), y), ContainsSubstring("shapes [3] and [2]"));
}

TEST_CASE("whole numbers wrap around, and dividing by 0 gives 0") {
  constexpr auto least = std::numeric_limits<std::int32_t>::min();
  const auto i = Tensor<std::int32_t>::from({4}, {7, -7, 3, least});
  using Ints = std::vector<std::int32_t>;
  const auto ints = [](const Tensor<std::int32_t>& x) { return Ints(x.span().begin(), x.span().end()); };
  CHECK(ints(i / 2) == Ints{3, -3, 1, least / 2});
  CHECK(ints(i / -1) == Ints{-7, 7, -3, least});
  CHECK(ints(i / 0) == Ints{0, 0, 0, 0});
  CHECK(ints(i + i) == Ints{14, -14, 6, 0});
  CHECK(ints(-i) == Ints{-7, 7, -3, least});
  CHECK(ints(abs(i)) == Ints{7, 7, 3, least});
  CHECK(ints(sign(i)) == Ints{1, -1, 1, -1});
  CHECK(ints(square(i)) == Ints{49, 49, 9, 0});
  CHECK(ints(clamp(i, -3, infinity)) == Ints{7, -3, 3, -3});
  CHECK(ints(pow(i, 3)) == Ints{343, -343, 27, 0});
  CHECK(ints(pow(i, -1)) == Ints{0, 0, 0, 0});
  CHECK(ints(pow(Tensor<std::int32_t>::from({3}, {1, -1, 2}), Tensor<std::int32_t>::from({3}, {-3, -3, 0}))) == Ints{1, -1, 1});
  CHECK_THROWS_WITH(i + 3000000000LL, "3000000000 does not fit the type int32");
  CHECK_THROWS_WITH(clamp(i, 0.5, 3), ContainsSubstring("must be integers, not 0.5 and 3"));
  CHECK(Tensor<std::int64_t>::from({1}, {3}).item() + 1 == (Tensor<std::int64_t>::from({1}, {3}) + 1).item());
}

TEST_CASE("comparisons give tensors of bool") {
  const auto x = tensor_of<float>({1, 2, 3, no_number});
  const auto text = [](const Tensor<bool>& mask) {
    std::string result;
    for (const bool bit : mask.span()) result += bit ? '1' : '0';
    return result;
  };
  CHECK(text(x < 2) == "1000");
  CHECK(text(x <= 2) == "1100");
  CHECK(text(x > 2) == "0010");
  CHECK(text(2 >= x) == "1100");
  CHECK(text(eq(x, 2)) == "0100");
  CHECK(text(ne(x, x)) == "0001");
  CHECK(text(isnan(x)) == "0001");
  CHECK(text(isinf(x / 0)) == "1110");
  CHECK(text(isfinite(x / tensor_of<float>({0, 1, 1, 1}))) == "0110");
  CHECK(text(logical_and(x > 1, x < 3)) == "0100");
  CHECK(text(logical_or(x > 2, isnan(x))) == "0011");
  CHECK(text(logical_xor(x > 1, x > 2)) == "0100");
  CHECK(text(logical_not(x > 1)) == "1001");
  CHECK(logical_and(Tensor<bool>::full({3, 1}, true), Tensor<bool>::full({2}, true)).shape() == Shape{3, 2});
  CHECK(to_string(x > 2) == "[false false  true false] (bool, shape [4])");
  CHECK(isnan(Tensor<bfloat16>::full({1}, bfloat16(std::nanf("")))).item());
  CHECK(isinf(Tensor<float16>::full({1}, float16(1e6F))).item());
  CHECK_FALSE(isnan(Tensor<double>::full({}, 1)).item());
}

TEST_CASE("where and masked_fill") {
  const auto x = tensor_of<float>({1, 2, 3, no_number});
  require_equal(where(x > 1, x, 0), {0, 2, 3, 0}, 0);
  require_equal(where(isnan(x), -1, x), {1, 2, 3, -1}, 0);
  require_equal(masked_fill(x, isnan(x), 7.5), {1, 2, 3, 7.5}, 0);
  const auto masked = where(Tensor<bool>::from({2, 1}, {true, false}), x, x + 1);
  CHECK(masked.shape() == Shape{2, 4});
  require_equal(masked, {1, 2, 3, no_number, 2, 3, 4, no_number}, 0);
  CHECK(where(Tensor<bool>::full({3}, true), Tensor<std::int64_t>::full({}, std::int64_t{1} << 60), 0).at(2) == std::int64_t{1}
                                                                                                                    << 60);
  CHECK_THROWS_WITH(masked_fill(x, Tensor<bool>::full({2, 4}, true), 0),
                    "masked_fill: a mask of shape [2, 4] cannot be repeated to [4]");
  CHECK_THROWS_WITH(where(Tensor<bool>(), x, x), "where: the mask is undefined");
  CHECK_THROWS_WITH(where(x > 1, x, Tensor<float>()), "where: operand 3 of 3 is undefined");
  CHECK_THROWS_WITH(where(x > 1, x, Tensor<float>({3})), ContainsSubstring("shapes [4] and [3]"));
}

TEMPLATE_TEST_CASE("operators in place", "", float, bfloat16, float16) {
  using T = TestType;
  auto x = tensor_of<T>({1, 2, 3, 4, 5, 6}).reshape({2, 3});
  const Tensor<T> shared = x;
  x += tensor_of<T>({1, 0, -1});
  require_equal(shared, {2, 2, 2, 5, 5, 5}, 0);
  x *= 2;
  x -= x.narrow(0, 1);  // which changes meanwhile
  require_equal(x, {0, 0, 0, 6, 6, 6}, 0);
  x /= Tensor<T>::from({2, 1}, {T(1.0F), T(4.0F)});
  x += x;
  require_equal(shared, {0, 0, 0, 3, 3, 3}, 0);
  auto row = tensor_of<T>({1, 2, 3});
  CHECK_THROWS_WITH(row += x, "add: the result has shape [3], but needs [2, 3]");
  CHECK_THROWS_WITH(row += Tensor<T>(), "add: b is undefined");
}

TEST_CASE("a number is written as log, a line by log too") {
  CHECK(log(Tensor<double>::full({}, 1)).item() == 0);
  CHECK(log(1.0) == 0);
  log(Severity::debug, "{} is left out", 1);
}

TEST_CASE("undefined operands are named") {
  const Tensor<float> none;
  const auto x = tensor_of<float>({1});
  CHECK_THROWS_WITH(x + none, "add: operand 2 of 2 is undefined");
  CHECK_THROWS_WITH(none < 1, "lt: operand 1 of 2 is undefined");
  CHECK_THROWS_WITH(exp(none), "exp: x is undefined");
  CHECK_THROWS_WITH(isnan(none), "isnan: x is undefined");
  CHECK_THROWS_WITH(logical_and(Tensor<bool>(), Tensor<bool>()), "logical_and: operand 1 of 2 is undefined");
  CHECK_THROWS_WITH(logical_not(Tensor<bool>()), "logical_not: the operand is undefined");
  CHECK_THROWS_WITH(clamp(x, no_number, 1), ContainsSubstring("the bounds are nan and 1"));
}

TEMPLATE_TEST_CASE("a comparison of a half type with a number rounds the number", "", bfloat16, float16) {
  const auto x = Tensor<TestType>::full({1}, static_cast<TestType>(0.1F));
  CHECK(eq(x, 0.1).at(0));
  CHECK(eq(0.1, x).at(0));
  CHECK_FALSE(ne(x, 0.1F).at(0));
  CHECK_FALSE(lt(x, 0.1).at(0));
  CHECK_FALSE(gt(x, 0.1).at(0));
  CHECK(le(x, 0.1).at(0));
  CHECK(ge(x, 0.1).at(0));
  CHECK(lt(x, 0.11).at(0));
}
