// Schedules of the learning rate, against the values of torch.optim.lr_scheduler 2.15 where it has them.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "optim/copy_state.hpp"
#include "trireme/core/error.hpp"
#include "trireme/optim/learning_rate.hpp"
#include "trireme/optim/plateau.hpp"

using namespace trireme;

namespace {

void require_rates(const optim::LearningRate& rate, const std::vector<double>& wanted) {
  for (std::size_t step = 0; step < wanted.size(); ++step) {
    CAPTURE(step);
    CHECK(rate(static_cast<std::int64_t>(step)) == Approx(wanted[step]).epsilon(1e-12).margin(1e-15));
  }
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
const std::vector<double> results{5, 4, 4, 4.1, 3.9999, 3.9, 4, 4, 4, 4, 4, 3, 3.5, 3.5, 3.5, 3.5, not_a_number, 3.5, 3.5};

void require_factors(const optim::PlateauOptions& options, const std::vector<double>& wanted) {
  optim::Plateau plateau(options);
  double before = 1;
  for (std::size_t at = 0; at < results.size(); ++at) {
    CAPTURE(at);
    CHECK(plateau.update(results[at]) == (wanted[at] < before));
    CHECK(plateau.factor() == Approx(wanted[at]).epsilon(1e-12));
    before = wanted[at];
  }
}

}  // namespace

TEST_CASE("warmup_stable_decay rises, stays, and falls in its last steps") {
  optim::StableOptions options{.base = 2, .warmup = 2, .total = 10, .decay = 4, .minimum = 0.5};
  const double fall = 1.5;
  require_rates(optim::warmup_stable_decay(options),
                {1, 2, 2, 2, 2, 2, 2, 2 - fall * 0.5, 2 - fall * std::sqrt(0.5), 2 - fall * std::sqrt(0.75), 0.5, 0.5});
  options.fall = optim::Fall::line;
  options.rise = optim::Warmup::from_zero;
  require_rates(optim::warmup_stable_decay(options), {0, 1, 2, 2, 2, 2, 2, 1.625, 1.25, 0.875, 0.5, 0.5});
  require_rates(optim::warmup_stable_decay({.base = 2, .total = 2, .decay = 0, .minimum = 1}), {2, 2, 1});
  require_rates(optim::warmup_stable_decay({.base = 2, .total = 0, .minimum = 1}), {1, 1});
  require_rates(optim::warmup_stable_decay({.base = 4, .total = 4, .decay = 4}), {4, 2, 4 - 4 * std::sqrt(0.5)});
  CHECK_THROWS_WITH(optim::warmup_stable_decay({.warmup = 5, .total = 8, .decay = 4}),
                    ContainsSubstring("warm-up of 5 steps and decay of 4 are 0 or more, and together not above its 8 steps"));
  CHECK_THROWS_AS(optim::warmup_stable_decay({.warmup = 1, .total = 8, .decay = -1}), Error);
}

TEST_CASE("cyclic goes up and down as torch CyclicLR") {
  optim::CyclicOptions options{.base = 0.1, .maximum = 0.9, .rising = 2, .falling = 3};
  require_rates(optim::cyclic(options), {0.1, 0.5, 0.9, 0.6333333333333333, 0.3666666666666667, 0.1, 0.5, 0.9});
  options.cycles = optim::Cycles::halved;
  require_rates(optim::cyclic(options), {0.1, 0.5, 0.9, 0.6333333333333333, 0.3666666666666667, 0.1, 0.3, 0.5,
                                         0.3666666666666667, 0.23333333333333334, 0.1, 0.2, 0.3});
  options.cycles = optim::Cycles::decayed;
  options.gamma = 0.9;
  require_rates(optim::cyclic(options), {0.1, 0.46, 0.748, 0.4888, 0.27496, 0.1, 0.3125764, 0.48263752, 0.329582512});
  require_rates(optim::cyclic({.base = 0, .maximum = 1, .rising = 2}), {0, 0.5, 1, 0.5, 0, 0.5, 1, 0.5, 0});
  CHECK_THROWS_WITH(optim::cyclic({.rising = 0}), ContainsSubstring("cyclic needs rising steps above 0"));
  CHECK_THROWS_AS(optim::cyclic({.falling = -1}), Error);
}

TEST_CASE("sequential has each schedule begin anew, as torch SequentialLR") {
  const auto rate =
      optim::sequential({{optim::linear(0.5, 0.5, 1, 2), 3}, {optim::exponential(0.5, 0.5), 3}, {optim::constant(0.15)}});
  require_rates(rate, {0.25, 0.375, 0.5, 0.5, 0.25, 0.125, 0.15, 0.15});
  require_rates(optim::sequential({{optim::constant(1), 0}, {optim::constant(2)}}), {2, 2});
  require_rates(optim::sequential({{optim::exponential(1, 0.5), 1}}), {1, 0.5, 0.25});
  CHECK_THROWS_WITH(optim::sequential({}), ContainsSubstring("sequential needs a schedule"));
  CHECK_THROWS_WITH(optim::sequential({{{}, 1}}), ContainsSubstring("schedule 0 of sequential is empty"));
  CHECK_THROWS_WITH(optim::sequential({{optim::constant(1), -1}}), ContainsSubstring("has -1 steps"));
}

TEST_CASE("a plateau lowers the rate where torch ReduceLROnPlateau does") {
  require_factors({.factor = 0.5, .patience = 1},
                  {1, 1, 1, .5, .5, .5, .5, .25, .25, .125, .125, .125, .125, .0625, .0625, .03125, .03125, .015625, .015625});
  require_factors({.factor = 0.5, .patience = 1, .cooldown = 2, .minimum = 0.2},
                  {1, 1, 1, .5, .5, .5, .5, .25, .25, .25, .25, .25, .25, .2, .2, .2, .2, .2, .2});
  require_factors({.factor = 0.1, .patience = 2, .threshold = 0.05, .relative = false, .maximize = true},
                  {1, 1, 1, .1, .1, .1, .01, .01, .01, 1e-3, 1e-3, 1e-3, 1e-4, 1e-4, 1e-4, 1e-5, 1e-5, 1e-5, 1e-6});
}

TEST_CASE("a plateau without a finite result waits, too") {
  optim::Plateau plateau({.factor = 0.5, .patience = 1});
  CHECK_FALSE(plateau.update(not_a_number));
  CHECK(plateau.update(std::numeric_limits<double>::infinity()));
  CHECK_FALSE(plateau.update(-1));  // the first result that can be the best
  CHECK_FALSE(plateau.update(-1));
  CHECK(plateau.update(-1));
  CHECK_THROWS_WITH(optim::Plateau({.factor = 1}), ContainsSubstring("a plateau's factor lies in [0, 1), got 1"));
  CHECK_THROWS_AS(optim::Plateau({.patience = -1}), Error);
  CHECK_THROWS_AS(optim::Plateau({.threshold = not_a_number}), Error);
  CHECK_THROWS_AS(optim::Plateau({.minimum = 2}), Error);
}

TEST_CASE("a plateau that goes on from its state, after any result, gives the same rates") {
  const optim::PlateauOptions options{.factor = 0.5, .patience = 1, .cooldown = 1, .minimum = 0.01};
  for (std::size_t stop = 0; stop <= results.size(); ++stop) {
    optim::Plateau whole(options);
    for (std::size_t at = 0; at < stop; ++at) whole.update(results[at]);
    optim::Plateau resumed(options);
    State from;
    State to;
    whole.add_to(from);
    resumed.add_to(to);
    tests::copy_state(from, to);
    for (std::size_t at = stop; at < results.size(); ++at) {
      whole.update(results[at]);
      resumed.update(results[at]);
      REQUIRE(whole.factor() == resumed.factor());
    }
  }
}

TEST_CASE("one cycle has a rate for every step, however few of them rise") {
  for (const std::int64_t total : {2, 3, 4, 10, 100}) {
    for (const double share : {0.0, 0.5 / static_cast<double>(total), 1.0 / static_cast<double>(total), 0.3, 0.5, 1.0}) {
      CAPTURE(total, share);
      const auto schedule = optim::one_cycle({.maximum = 2, .total = total, .rising_share = share});
      double highest = 0;
      for (std::int64_t step = 0; step < total + 3; ++step) {
        const double rate = schedule(step);
        CHECK((rate > 0 && rate <= 2));  // false for nan
        highest = std::max(highest, rate);
      }
      CHECK(schedule(total + 2) == schedule(total - 1));
      if (share * static_cast<double>(total) == 1) CHECK(schedule(0) == 2);  // nothing rises
      if (share * static_cast<double>(total) > 1) CHECK(schedule(0) == Approx(2.0 / 25));
    }
  }
}

TEST_CASE("a cosine stays at its minimum") {
  const auto schedule = optim::cosine(2, 10, 0.5);
  CHECK(schedule(0) == 2);
  CHECK(schedule(5) == Approx(1.25));
  for (const std::int64_t step : {10, 11, 15, 20, 1000}) CHECK(schedule(step) == Approx(0.5));
}

TEST_CASE("the inverse square root rises, then falls") {
  const auto schedule = optim::inverse_square_root(2, 4);
  CHECK(schedule(0) == Approx(0.5));
  CHECK(schedule(3) == Approx(2));
  CHECK(schedule(15) == Approx(1));
  CHECK_THROWS_AS(optim::inverse_square_root(1, 0), Error);
}
