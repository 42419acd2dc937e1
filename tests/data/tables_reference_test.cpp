#include "catch.hpp"
#include "fixtures.hpp"
#include "trireme/data/tables/read_csv.hpp"

using namespace trireme;
using namespace trireme::data;

// The files as scikit-learn has them: their first line holds counts and the names of the classes.
TEST_CASE("tables that everybody knows are read") {
  const auto folder = tests::data_folder_or_skip() / "tabular";
  const Table iris = read_csv(folder / "iris.csv", {.label = "4", .skipped_lines = 1, .header = false});
  CHECK(iris.size() == 150);
  CHECK(iris.num_features() == 4);
  CHECK(iris.class_names() == std::vector<std::string>{"0", "1", "2"});
  const Standardization standardization = iris.standardization();
  CHECK(standardization.mean[0] == Approx(5.843333));  // StandardScaler's
  CHECK(standardization.std[0] == Approx(0.825301));
  const auto [training, test] = iris.split({.test = 0.2, .stratify = true, .standardize = true});
  CHECK(training.size() == 120);
  for (const std::int32_t label : {0, 1, 2}) CHECK(std::ranges::count(test.labels(), label) == 10);
  const Table cancer = read_csv(folder / "breast_cancer.csv", {.label = "30", .skipped_lines = 1, .header = false});
  CHECK(cancer.size() == 569);
  CHECK_THROWS_WITH(read_csv(folder / "digits.csv.gz"), ContainsSubstring("packed by gzip"));
}
