#include "trireme/core/units.hpp"

#include <cmath>
#include <limits>
#include <thread>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/mean.hpp"
#include "trireme/core/parse_number.hpp"
#include "trireme/core/setting.hpp"
#include "trireme/core/stopwatch.hpp"

using namespace trireme;

TEST_CASE("amounts are written as they are read") {
  for (const Amount& amount :
       {Amount(Steps{600}), Amount(Steps{1}), Amount(Samples{5000}), Amount(Tokens{1'000'000'000'000}), Amount(Epochs{20}),
        Amount(Epochs{1}), Amount(Epochs{0.01}), Amount(Seconds{90}), Amount(Seconds{0.5})}) {
    INFO(to_text(amount));
    CHECK(parse_amount(to_text(amount)) == amount);
  }
}

TEST_CASE("amounts as people write them") {
  CHECK(parse_amount("600") == Amount(Steps{600}));
  CHECK(parse_amount("1e6 tokens") == Amount(Tokens{1'000'000}));
  CHECK(parse_amount("0.5epochs") == Amount(Epochs{0.5}));
  CHECK(parse_amount("30s") == Amount(Seconds{30}));
  CHECK(parse_amount("10min") == Amount(Seconds{600}));
  CHECK(parse_amount("2h") == Amount(Seconds{7200}));
}

TEST_CASE("what is no amount is refused") {
  for (const char* text : {"", "steps", "0", "-3", "1.5 steps", "5 apples", "nan", "inf s", "1e300", "3 s s", "10 min utes"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_amount(text), Error);
  }
}

TEST_CASE("a mean of parts is the mean of the whole") {
  Mean mean;
  CHECK(std::isnan(mean.value()));
  mean.add(2);
  mean.add(5, 3);
  mean += {.sum = 4, .weight = 1};
  CHECK(mean == Mean{21, 5});
  CHECK(mean == 4.2);
}

TEST_CASE("the value of a setting reads back to the same number, flag or text") {
  for (const double number : {0.1, 1e-3, 1.0 / 3, 6.02214076e23, -0.0, std::numeric_limits<double>::denorm_min(),
                              std::numeric_limits<double>::max()}) {
    INFO(number);
    CHECK(parse_number<double>(Setting("number", number).value) == number);
  }
  CHECK(parse_number<std::uint64_t>(Setting("seed", std::numeric_limits<std::uint64_t>::max()).value) ==
        std::numeric_limits<std::uint64_t>::max());
  CHECK(Setting("steps", 32) == Setting("steps", "32"));
  CHECK(Setting("flag", true).value == "on");
  CHECK(Setting("flag", false).value == "off");
  CHECK(Setting("schedule", std::string("1f1b")).value == "1f1b");
}

TEST_CASE("a stopwatch counts from when it was made or restarted") {
  Stopwatch stopwatch;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double before = stopwatch.seconds();
  CHECK(before >= 0.02);
  CHECK(stopwatch.restart() >= before);
  const double after = stopwatch.seconds();
  CHECK(after >= 0);
  CHECK(after <= stopwatch.seconds());
}
