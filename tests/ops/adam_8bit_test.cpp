// 8-bit moments: their codes, the CPU's pass against NumPy's values and against the GPU's kernels, and blocks in parts.

#include "trireme/ops/update/adam_8bit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ops/team_compare.hpp"
#include "ops/threads.hpp"
#include "ops/update/adam_8bit_body.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

// The numbers that have codes, in order: in decade i the middles of `cells` * 2^i equal parts.
std::vector<double> values(bool with_sign) {
  std::vector<double> all{0, 1};
  for (int decade = 0; decade < 7; ++decade) {
    const int cells = (with_sign ? 1 : 2) << decade;
    for (int cell = 0; cell < cells; ++cell) {
      const double value = std::pow(10.0, decade - 6) * (0.1 + 0.9 * (cell + 0.5) / cells);
      all.push_back(value);
      if (with_sign) all.push_back(-value);
    }
  }
  std::ranges::sort(all);
  return all;
}

double distance_to_nearest(const std::vector<double>& all, double x) {
  double least = std::abs(all[0] - x);
  for (const double value : all) least = std::min(least, std::abs(value - x));
  return least;
}

// A parameter of `count` elements, in the order of memory.
template <typename T>
struct Coded {
  explicit Coded(std::int64_t count)
      : gradient({count}),
        weight({count}),
        first_codes(Tensor<std::uint8_t>::zeros({count})),
        second_codes(Tensor<std::uint8_t>::zeros({count})),
        first_absmax(Tensor<float>::zeros({(count + 255) / 256})),
        second_absmax(Tensor<float>::zeros({(count + 255) / 256})) {
    for (std::int64_t i = 0; i < count; ++i) weight.data()[i] = static_cast<T>(std::cos(0.37 * static_cast<double>(i)));
  }

  // Before update `number`: gradients over 7 decades.
  void set_gradient(int number) {
    for (std::int64_t i = 0; i < gradient.numel(); ++i) {
      gradient.data()[i] = static_cast<T>(std::sin(0.9 * static_cast<double>(i) + number) * std::pow(10.0, -(i % 7)));
    }
  }
  Adam8bitPlanes<T> planes(std::int64_t from = 0, std::int64_t block = 0) const {
    return {gradient.data() + from,     weight.data() + from,        first_codes.data() + from,
            second_codes.data() + from, first_absmax.data() + block, second_absmax.data() + block};
  }

  Tensor<T> gradient;
  Tensor<T> weight;
  Tensor<std::uint8_t> first_codes;
  Tensor<std::uint8_t> second_codes;
  Tensor<float> first_absmax;
  Tensor<float> second_absmax;
};

template <typename T>
void require_same(const Coded<T>& got, const Coded<T>& wanted) {
  require_identical(got.weight, wanted.weight);
  REQUIRE(std::ranges::equal(got.first_codes.span(), wanted.first_codes.span()));
  REQUIRE(std::ranges::equal(got.second_codes.span(), wanted.second_codes.span()));
  require_identical(got.first_absmax, wanted.first_absmax);
  require_identical(got.second_absmax, wanted.second_absmax);
}

AdamStep step_of(int number) {
  return {.learning_rate = 0.01, .weight_decay = 0.1, .decoupled = true, .update = number, .gradient_scale = 0.5};
}

}  // namespace

TEST_CASE("256 codes stand for 256 numbers in their order, and each number gets the code of the nearest") {
  const auto with_sign = values(true);
  const auto without = values(false);
  REQUIRE(with_sign.size() == 256);
  for (std::size_t at = 0; at < 256; ++at) {
    const int code = static_cast<int>(at);
    CHECK(SignedCodes::value<OneNumber>(code) == Approx(with_sign[at]).epsilon(2e-7).margin(0));
    CHECK(UnsignedCodes::value<OneNumber>(code) == Approx(without[at]).epsilon(2e-7).margin(0));
    CHECK(SignedCodes::code<OneNumber>(SignedCodes::value<OneNumber>(code)) == code);
    CHECK(UnsignedCodes::code<OneNumber>(UnsignedCodes::value<OneNumber>(code)) == code);
  }
  for (int i = 0; i < 4000; ++i) {
    const auto x = static_cast<float>(std::pow(10.0, -7.5 * i / 4000));
    CAPTURE(x);
    for (const float y : {x, -x}) {
      const double distance =
          std::abs(with_sign[static_cast<std::size_t>(SignedCodes::code<OneNumber>(y))] - static_cast<double>(y));
      CHECK(distance <= distance_to_nearest(with_sign, y) + 1e-6 * x);
    }
    const int code = UnsignedCodes::code<OneNumber>(x);
    if (code == 1) continue;
    CHECK(std::abs(without[static_cast<std::size_t>(code)] - static_cast<double>(x)) <=
          distance_to_nearest(without, x) + 1e-6 * x);
  }
}

TEST_CASE("codes of what is tiny, huge or no number") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(SignedCodes::code<OneNumber>(0.0F) == 127);
  CHECK(SignedCodes::code<OneNumber>(1e-30F) == 127);
  CHECK(SignedCodes::code<OneNumber>(-1e-30F) == 127);
  CHECK(SignedCodes::code<OneNumber>(nan) == 127);
  CHECK(SignedCodes::code<OneNumber>(1.0F) == 255);
  CHECK(SignedCodes::code<OneNumber>(-1.0F) == 0);
  CHECK(SignedCodes::code<OneNumber>(infinity) == 255);
  CHECK(SignedCodes::code<OneNumber>(-infinity) == 0);
  CHECK(UnsignedCodes::code<OneNumber>(0.0F) == 0);
  CHECK(UnsignedCodes::code<OneNumber>(1e-40F) == 1);
  CHECK(UnsignedCodes::code<OneNumber>(nan) == 0);
  CHECK(UnsignedCodes::code<OneNumber>(1.0F) == 255);
  CHECK(UnsignedCodes::code<OneNumber>(infinity) == 255);
}

// From a program of NumPy in double, which looks for the nearest of the 256 numbers.
TEMPLATE_TEST_CASE("eight steps of 8-bit AdamW have the values of NumPy", "", float, double) {
  using T = TestType;
  Coded<T> moments(600);
  const std::array<std::int64_t, 7> places{0, 1, 2, 6, 255, 256, 599};
  const auto check = [&](const std::array<double, 7>& weights, const std::array<int, 7>& first,
                         const std::array<int, 7>& second, const std::array<double, 3>& first_absmax,
                         const std::array<double, 3>& second_absmax) {
    for (std::size_t at = 0; at < places.size(); ++at) {
      CAPTURE(places[at]);
      CHECK(static_cast<double>(moments.weight.data()[places[at]]) == Approx(weights[at]).epsilon(1e-5));
      CHECK(moments.first_codes.data()[places[at]] == first[at]);
      CHECK(moments.second_codes.data()[places[at]] == second[at]);
    }
    for (std::size_t block = 0; block < 3; ++block) {
      CHECK(moments.first_absmax.span()[block] == Approx(first_absmax[block]).epsilon(1e-6));
      CHECK(moments.second_absmax.span()[block] == Approx(second_absmax[block]).epsilon(1e-6));
    }
  };
  for (int number = 1; number <= 8; ++number) {
    moments.set_gradient(number);
    adam_8bit(step_of(number), 600, moments.planes());
    if (number != 1) continue;
    check({0.989000000237679, 0.921395020373923, 0.727730149874106, -0.612483045299985, 1.00378504552002, 0.899667675740832,
           -0.137042066149132},
          {243, 189, 147, 127, 112, 120, 123}, {213, 59, 6, 1, 2, 1, 1}, {0.0499999784, 0.0499341004, 0.0390824527},
          {0.000249999808, 0.00024934145, 0.000152743814});
  }
  check({0.960641718709269, 0.907881198330314, 0.740904876929151, -0.608219029666711, 1.01545362624536, 0.89384234629137,
         -0.141172620914165},
        {247, 186, 144, 126, 113, 120, 125}, {253, 58, 12, 1, 2, 1, 1}, {0.0630406216, 0.0617417842, 0.0440048724},
        {0.00115023262, 0.00109873584, 0.00092498376});
}

TEMPLATE_TEST_CASE("a block that is updated in parts has the bits of one that is not", "", float, double) {
  using T = TestType;
  Coded<T> whole(600);
  Coded<T> parted(600);
  const Tensor<float> of_parts({3, 2});
  std::array<float, 3> first{};  // of each part
  std::array<float, 3> second{};
  const std::array<std::int64_t, 4> bounds{256, 272, 480, 512};
  for (int number = 1; number <= 3; ++number) {
    whole.set_gradient(number);
    parted.set_gradient(number);
    adam_8bit(step_of(number), 600, whole.planes());
    const auto part = [&](std::size_t at) {
      Adam8bitPlanes<T> planes = parted.planes(bounds[at]);
      planes.first_absmax = &first[at];
      planes.second_absmax = &second[at];
      return planes;
    };
    const auto count = [&](std::size_t at) { return static_cast<std::size_t>(bounds[at + 1] - bounds[at]); };
    const auto before = parted.weight.clone();
    for (std::size_t at = 0; at < 3; ++at) measure_adam_8bit(step_of(number), count(at), part(at), of_parts.data() + 2 * at);
    require_identical(parted.weight, before);
    adam_8bit(step_of(number), 256, parted.planes());
    for (std::size_t at = 0; at < 3; ++at) adam_8bit_part(step_of(number), count(at), part(at), of_parts.data(), 3);
    adam_8bit(step_of(number), 88, parted.planes(512, 2));
    for (std::size_t at = 0; at < 3; ++at) {
      CHECK(first[at] == whole.first_absmax.data()[1]);
      CHECK(second[at] == whole.second_absmax.data()[1]);
    }
    parted.first_absmax.data()[1] = first[0];
    parted.second_absmax.data()[1] = second[0];
    require_same(parted, whole);
  }
}

TEMPLATE_TEST_CASE("8-bit AdamW by teams, and a step that is skipped", "", float, double) {
  using T = TestType;
  for (const int size : {32, 45, 64}) {
    CAPTURE(size);
    Coded<T> here(600);
    Coded<T> by_team(600);
    for (int number = 1; number <= 2; ++number) {
      here.set_gradient(number);
      by_team.set_gradient(number);
      Tensor<float> wanted({2});
      Tensor<float> measured({2});
      const AdamUpdate<T> update(step_of(number));
      const MeasureBlock8bit<T> measure{by_team.planes(), 256, measured.data()};
      measure_adam_8bit(step_of(number), 256, here.planes(), wanted.data());
      run_rows(size, 1, [&](const auto& team, std::int64_t row) { measure(update, false, team, row); });
      require_close(measured, as_doubles(wanted), 1e-6);
      adam_8bit(step_of(number), 600, here.planes());
      const UpdateBlock8bit<T> body{by_team.planes(), 600, nullptr, 0};
      run_rows(size, 3, [&](const auto& team, std::int64_t row) { body(update, false, team, row); });
      require_close(by_team.weight, as_doubles(here.weight), 1e-5);
      require_close(by_team.first_absmax, as_doubles(here.first_absmax), 1e-6);
      int others = 0;
      for (std::size_t i = 0; i < 600; ++i) {
        others += by_team.first_codes.span()[i] != here.first_codes.span()[i];
        others += by_team.second_codes.span()[i] != here.second_codes.span()[i];
      }
      CHECK(others <= 2);  // between two codes, by rounding
    }
    Coded<T> before = by_team;
    before.weight = by_team.weight.clone();
    before.first_absmax = by_team.first_absmax.clone();
    const UpdateBlock8bit<T> body{by_team.planes(), 600, nullptr, 0};
    run_rows(size, 3, [&](const auto& team, std::int64_t row) { body(AdamUpdate<T>(step_of(3)), true, team, row); });
    require_same(by_team, before);
    // A part of a block, by what its parts have measured.
    const Tensor<float> pairs = Tensor<float>::from({2, 2}, {1e-3F, 2e-3F, 4e-2F, 1e-4F});
    const UpdateBlock8bit<T> part{by_team.planes(), 48, pairs.data(), 2};
    run_rows(size, 1, [&](const auto& team, std::int64_t row) { part(AdamUpdate<T>(step_of(3)), false, team, row); });
    CHECK(by_team.first_absmax.data()[0] == 4e-2F);
    CHECK(by_team.second_absmax.data()[0] == 2e-3F);
  }
}

TEST_CASE("one element that overflows leaves the others of its block numbers") {
  Coded<float> moments(300);
  moments.set_gradient(1);
  moments.gradient.data()[5] = 1e30F;
  for (int number = 1; number <= 3; ++number) {
    adam_8bit(step_of(number), 300, moments.planes());
    moments.set_gradient(number + 1);
  }
  for (const float weight : moments.weight.span()) CHECK(std::isfinite(weight));
  CHECK(std::isfinite(moments.second_absmax.data()[0]));
}

TEST_CASE("any number of threads updates the same bits, and no elements are no work") {
  constexpr std::int64_t count = 256 * 16 * 40 + 100;
  Coded<float> one(count);
  Coded<float> many(count);
  for (int number = 1; number <= 2; ++number) {
    one.set_gradient(number);
    many.set_gradient(number);
    with_threads(1, [&] { adam_8bit(step_of(number), count, one.planes()); });
    with_threads(4, [&] { adam_8bit(step_of(number), count, many.planes()); });
  }
  require_same(many, one);
  adam_8bit<float>(step_of(1), 0, {});
  adam_8bit_part<float>(step_of(1), 0, {}, nullptr, 1);
  CHECK_THROWS_WITH(adam_8bit_part(step_of(1), 257, one.planes(), nullptr, 1),
                    ContainsSubstring("adam_8bit_part: 257 elements do not lie in one block of 256"));
}
