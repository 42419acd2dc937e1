#include "trireme/data/tables/table.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/loaders/evaluation_batches.hpp"
#include "trireme/data/loaders/loader.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

// Row i holds i and 10 i; every third one is of class 1.
Table counting(std::int64_t rows) {
  TableContent content{.feature_names = {"one", "ten"}, .class_names = {"no", "yes"}};
  for (std::int64_t i = 0; i < rows; ++i) {
    content.features.push_back(static_cast<float>(i));
    content.features.push_back(static_cast<float>(10 * i));
    content.labels.push_back(i % 3 == 0 ? 1 : 0);
  }
  return Table(content);
}

std::vector<int> rows_of(const Table& table) {
  std::vector<int> rows;
  for (std::size_t i = 0; i < table.features().size(); i += 2) rows.push_back(static_cast<int>(table.features()[i]));
  return rows;
}

std::vector<int> sorted(std::vector<int> values) {
  std::ranges::sort(values);
  return values;
}

}  // namespace

TEST_CASE("rows of a table become a batch") {
  const Table table = counting(5);
  CHECK(table.size() == 5);
  CHECK(table.num_features() == 2);
  CHECK(table.num_classes() == 2);
  const Rows rows = table.collate(std::vector<std::int64_t>{3, 1}, 7);
  CHECK(rows.x.shape() == Shape{2, 2});
  CHECK(rows.size() == 2);
  CHECK(std::ranges::equal(rows.x.span(), std::vector<float>{3, 30, 1, 10}));
  CHECK(std::ranges::equal(rows.labels.span(), std::vector<std::int32_t>{1, 0}));
  CHECK(!rows.targets.defined());
  CHECK(rows.first_sample == 7);
  CHECK_THROWS_WITH(table.collate(std::vector<std::int64_t>{5}, 0), ContainsSubstring("row 5 does not exist among 5"));
  CHECK_THROWS_AS(table.collate(std::vector<std::int64_t>{-1}, 0), Error);

  const Table prices({.feature_names = {"a"}, .features = {1, 2}, .targets = {5, 6}});
  const Rows both = on_device<Cpu>(prices.collate(std::vector<std::int64_t>{1, 0}, 0));
  CHECK(both.targets.shape() == Shape{2, 1});
  CHECK(both.targets.data()[0] == 6);
  CHECK(!both.labels.defined());
}

TEST_CASE("a loader reads a table, an evaluation too") {
  const Table table = counting(10);
  const Loader loader(table, BatchOptions{.batch_size = 5, .seed = 3});
  std::vector<int> seen;
  for (const std::int64_t step : {0, 1}) {
    const Rows rows = loader.load(step);
    CHECK(rows.first_sample == 5 * step);
    for (std::int64_t row = 0; row < 5; ++row) {
      const auto number = static_cast<int>(rows.x.data()[2 * row]);
      CHECK(rows.labels.data()[row] == (number % 3 == 0 ? 1 : 0));
      seen.push_back(number);
    }
  }
  CHECK(sorted(seen) == rows_of(table));
  std::vector<float> evaluated;
  for (const Rows& rows : evaluation_batches(table, {.batch_size = 4})) {
    for (std::int64_t row = 0; row < rows.size(); ++row) evaluated.push_back(rows.x.data()[2 * row]);
  }
  CHECK(std::ranges::equal(evaluated, rows_of(table)));
}

TEST_CASE("content that is no table is refused") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH(Table(TableContent{}), ContainsSubstring("without features"));
  CHECK_THROWS_WITH(Table({.feature_names = {"a"}}), ContainsSubstring("at least one row"));
  CHECK_THROWS_WITH(Table({.feature_names = {"a", "b"}, .features = {1, 2, 3}}),
                    ContainsSubstring("3 values are no rows of 2"));
  CHECK_THROWS_WITH(Table({.feature_names = {"a"}, .features = {1, nan}}), ContainsSubstring("feature a of row 1 is nan"));
  CHECK_THROWS_WITH(Table({.feature_names = {"a"}, .features = {1, 2}, .labels = {0}, .class_names = {"x"}}),
                    ContainsSubstring("1 labels for 2 rows"));
  CHECK_THROWS_WITH(Table({.feature_names = {"a"}, .features = {1}, .labels = {1}, .class_names = {"x"}}),
                    ContainsSubstring("label 1 of row 0 is none of the classes 0 to 0"));
  CHECK_THROWS_WITH(Table({.feature_names = {"a"}, .features = {1}, .labels = {0}}),
                    ContainsSubstring("1 labels of 0 classes"));
  CHECK_THROWS_WITH(Table({.feature_names = {"a"}, .features = {1, 2}, .unrounded = {1}}),
                    ContainsSubstring("1 unrounded values for 2 features"));
  CHECK_THROWS_WITH(Table({.feature_names = {"a"}, .features = {1, 2}, .unrounded = {1, 3}}),
                    ContainsSubstring("2 is not 3 rounded"));
  CHECK_THROWS_WITH(Table({.feature_names = {"a_x"}, .features = {1}, .columns = {{"a", {"x", "y"}}}}),
                    ContainsSubstring("the columns have 2 features, but the table has 1"));
  CHECK_THROWS_WITH(Table({.feature_names = {"a"}, .features = {1}, .targets = {nan}}), ContainsSubstring("target of row 0"));
}

TEST_CASE("a split shares the rows out, the same way for the same seed") {
  const Table table = counting(50);
  const auto [training, test] = table.split({.test = 0.3, .seed = 4});
  CHECK(training.size() == 35);
  CHECK(test.size() == 15);
  auto all = rows_of(training);
  const auto of_test = rows_of(test);
  all.insert(all.end(), of_test.begin(), of_test.end());
  CHECK(sorted(all) == rows_of(table));
  CHECK(sorted(rows_of(training)) != rows_of(training));
  CHECK(training.class_names() == table.class_names());
  for (std::int64_t row = 0; row < test.size(); ++row) {
    const auto at = static_cast<std::size_t>(row);
    CHECK(test.labels()[at] == (of_test[at] % 3 == 0 ? 1 : 0));
  }
  CHECK(rows_of(table.split({.test = 0.3, .seed = 4}).test) == of_test);
  CHECK(rows_of(table.split({.test = 0.3, .seed = 5}).test) != of_test);
}

TEST_CASE("a split that does not shuffle keeps the order of the rows") {
  const auto [training, test] = counting(10).split({.test = 0.3, .shuffle = false});
  CHECK(rows_of(training) == std::vector<int>{0, 1, 2, 3, 4, 5, 6});
  CHECK(rows_of(test) == std::vector<int>{7, 8, 9});
  const Table last = counting(2).split({.test = 0.01, .shuffle = false}).test;
  CHECK(rows_of(last) == std::vector<int>{1});
  CHECK_THROWS_WITH(counting(10).split({.shuffle = false, .stratify = true}), ContainsSubstring("can't be stratified"));
}

TEST_CASE("a part of a table has neighbouring rows") {
  const Table table = counting(5);
  const Table part = table.part(2, 3);
  CHECK(rows_of(part) == std::vector<int>{2, 3, 4});
  CHECK(std::ranges::equal(part.labels(), std::vector<std::int32_t>{0, 1, 0}));
  CHECK(part.class_names() == table.class_names());
  for (const auto& [begin, count] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, 0}, {-1, 2}, {4, 2}, {5, 1}, {0, 6}, {1, std::numeric_limits<std::int64_t>::max()}}) {
    CHECK_THROWS_WITH(table.part(begin, count), ContainsSubstring("no part of 5 rows"));
  }
}

TEST_CASE("a stratified split has the same part of each class") {
  const Table table = counting(60);  // 20 of class 1
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto [training, test] = table.split({.test = 0.1, .seed = seed, .stratify = true});
    CHECK(std::ranges::count(test.labels(), 1) == 2);
    CHECK(std::ranges::count(test.labels(), 0) == 4);
    CHECK(training.size() == 54);
    CHECK_FALSE(std::ranges::is_sorted(test.labels()));
  }
  const auto [training, test] = counting(4).split({.test = 0.01, .stratify = true});  // two of each class
  CHECK(std::ranges::count(test.labels(), 1) == 1);
  CHECK(std::ranges::count(training.labels(), 1) == 1);
}

TEST_CASE("splits that can't be are refused") {
  const Table table = counting(10);
  for (const double test : {0.0, 1.0, -0.5, 2.0, std::nan("")}) {
    CHECK_THROWS_WITH(table.split({.test = test}), ContainsSubstring("does not lie in (0, 1)"));
  }
  CHECK_THROWS_WITH(counting(1).split(), ContainsSubstring("one row"));
  CHECK_THROWS_WITH(counting(3).split({.stratify = true}), ContainsSubstring("class yes has one row"));
  CHECK_THROWS_WITH(Table({.feature_names = {"a"}, .features = {1, 2}}).split({.stratify = true}),
                    ContainsSubstring("without labels"));
  CHECK(counting(2).split({.test = 0.99}).training.size() == 1);
  CHECK(counting(2).split({.test = 0.01}).test.size() == 1);
}

TEST_CASE("both parts are standardized by the training part") {
  const Table table = counting(40);
  const auto [training, test] = table.split({.test = 0.25, .seed = 2, .standardize = true});
  const auto plain = table.split({.test = 0.25, .seed = 2});
  const Standardization standardization = plain.training.standardization();
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < training.features().size(); i += 2) {
    const double value = training.features()[i];
    sum += value;
    squares += value * value;
  }
  CHECK(sum == Approx(0).margin(1e-5));
  CHECK(squares / 30 == Approx(1));
  for (std::size_t i = 0; i < test.features().size(); ++i) {
    const double expected = (plain.test.features()[i] - standardization.mean[i % 2]) / standardization.std[i % 2];
    CHECK(test.features()[i] == Approx(expected));
  }
}

TEST_CASE("a feature that never changes becomes 0") {
  // 0.1 is no float: its mean over many rows, rounded, is not quite it.
  TableContent content{.feature_names = {"a"}, .features = std::vector<float>(1001, 0.1f)};
  const Table table(content);
  CHECK(table.standardization().std == std::vector<double>{1});
  const Table zeros = table.standardized(table.standardization());
  CHECK(std::ranges::count(zeros.features(), 0.0f) == 1001);
  CHECK_THROWS_WITH(table.standardized({.mean = {0, 0}, .std = {1, 1}}), ContainsSubstring("does not fit 1 features"));
  CHECK_THROWS_WITH(table.standardized({.mean = {0}, .std = {0}}), ContainsSubstring("not above 0"));
}
