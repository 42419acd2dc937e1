#include "allreduce_buckets/recommendation.hpp"

#include "catch.hpp"

TEST_CASE("the interval of a median leaves out what chance may bring") {
  const std::vector<double> ten = {9, 3, 1, 7, 5, 2, 8, 4, 10, 6};
  const Interval wide = interval_of_median(ten, 0.95);  // 22 of 1,024 outcomes of ten tosses lie outside
  CHECK((wide.least == 2 && wide.most == 9));
  CHECK(interval_of_median(ten, 0.99).least == 1);
  CHECK(interval_of_median({3, 1, 2}, 0.95).most == 3);
  CHECK(interval_of_median({4}, 0.95).least == 4);
}

TEST_CASE("a bucket size is recommended only where its steps are shorter whatever chance does") {
  const std::vector<double> usual = {10, 11, 10, 12, 10, 30, 10, 11, 10, 10, 11, 10};
  const auto with = [&](double factor, double jitter) {
    std::vector<double> seconds;
    for (std::size_t round = 0; round < usual.size(); ++round) {
      seconds.push_back(usual[round] * (factor + (round % 2 == 0 ? jitter : -jitter)));
    }
    return seconds;
  };
  const TimedWay base{"25", usual};
  const Recommendation shorter = recommend({base, {"4", with(0.9, 0.01)}, {"8", with(0.95, 0.01)}}, 0);
  CHECK((shorter.differs && shorter.setting == "4"));
  CHECK((shorter.gain.least > 0.08 && shorter.gain.most < 0.12));
  const Recommendation alike = recommend({base, {"4", with(0.99, 0.05)}, {"8", with(1.05, 0.01)}}, 0);
  CHECK((!alike.differs && alike.setting == "25" && alike.enough));
  const Recommendation few = recommend({{"25", {10, 10, 10}}, {"4", {5, 5, 5}}}, 0);
  CHECK((!few.differs && !few.enough));
  CHECK(recommend({{"25", {10, 14, 10, 6, 10, 14, 6}}}, 0).noise == 0.4);
}
