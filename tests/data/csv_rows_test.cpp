#include "trireme/data/shards/csv_rows.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "catch.hpp"
#include "data/counted_file_system.hpp"
#include "data/tables/records.hpp"
#include "data/tar_files.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/loaders/loader.hpp"

using namespace trireme;
using namespace trireme::data;
using tests::TemporaryFolder;
using tests::write_text;

namespace {

using Fields = std::vector<std::string>;

std::string error_in(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::vector<float> floats_in(const Tensor<float>& tensor) {
  return tensor.defined() ? std::vector<float>(tensor.data(), tensor.data() + tensor.numel()) : std::vector<float>();
}

std::vector<std::int32_t> labels_in(const Rows& rows) {
  if (!rows.labels.defined()) return {};
  return {rows.labels.data(), rows.labels.data() + rows.labels.numel()};
}

void check_same(const Rows& rows, const Rows& expected) {
  REQUIRE(rows.x.shape() == expected.x.shape());
  CHECK(floats_in(rows.x) == floats_in(expected.x));
  CHECK(labels_in(rows) == labels_in(expected));
  CHECK(floats_in(rows.targets) == floats_in(expected.targets));
  CHECK(rows.first_sample == expected.first_sample);
}

void check_same(const CsvRows& rows, const Table& table, std::mt19937& random) {
  REQUIRE(rows.size() == table.size());
  CHECK(rows.feature_names() == table.feature_names());
  CHECK(rows.class_names() == table.class_names());
  CHECK(rows.columns() == table.columns());
  std::vector<std::int64_t> indices(static_cast<std::size_t>(rows.size()));
  std::iota(indices.begin(), indices.end(), 0);
  check_same(rows.collate(indices, 3), table.collate(indices, 3));
  std::ranges::shuffle(indices, random);
  check_same(rows.collate(indices, 0), table.collate(indices, 0));
  for (const std::int64_t index : indices) check_same(rows.at(index), table.collate({&index, 1}, index));
}

// Files of rows as they are written in the wild: a number, an exact one, a category, a class or a target, a remark.
class RandomCsv {
 public:
  explicit RandomCsv(std::uint32_t seed) : random(seed) {
    options.separator = one_of(",;\t|");
    options.decimal = one_of(".,");
    options.header = below(4) > 0;
    options.skipped_lines = below(3);
    options.missing = MissingValues{static_cast<std::uint8_t>(below(3))};
    const bool has_label = below(2) == 0;
    (has_label ? options.label : options.target) = options.header ? "y" : "3";
    options.categories = {options.header ? "kind" : "2"};
    options.ignored = {options.header ? "re\"mark\nof all" : "4"};
    line_end_ = below(2) == 0 ? "\n" : "\r\n";
  }

  std::string text(int rows) {
    std::string text = below(3) == 0 ? "\xef\xbb\xbf" : "";
    for (std::int64_t line = 0; line < options.skipped_lines; ++line) text += "made by \"hand" + line_end_;
    if (options.header) text += record({"a", "b", "kind", "y", "re\"mark\nof all"});
    for (int row = 0; row < rows; ++row) {
      const std::string y = options.label.empty() ? number() : std::string(1, static_cast<char>('p' + below(5)));
      const bool misses = row > 1 && options.missing != MissingValues::refused && below(4) == 0;
      const bool drops = options.missing == MissingValues::rows_dropped;
      text += record({misses ? "NA" : number(), std::to_string(below(9)), drops && misses ? "" : kind(), y, remark()});
      while (below(5) == 0) text += below(2) == 0 ? line_end_ : " " + line_end_;
    }
    if (below(3) == 0) text.erase(text.size() - line_end_.size());
    return text;
  }

  CsvOptions options;
  std::mt19937 random;

 private:
  int below(int end) { return static_cast<int>(random() % static_cast<std::uint32_t>(end)); }
  char one_of(std::string_view choices) { return choices[static_cast<std::size_t>(below(static_cast<int>(choices.size())))]; }
  std::string number() {
    return fmt::format("{}{}{}{}", below(2000) - 1000, options.decimal, below(1000), below(4) == 0 ? "e-2" : "");
  }
  std::string kind() {
    return below(2) == 0 ? std::to_string(below(4)) + (below(2) == 0 ? ",0" : "") : "k\n" + std::to_string(below(3));
  }
  std::string remark() { return below(2) == 0 ? "" : std::string(static_cast<std::size_t>(below(40)), one_of("x\"\n\r,; ")); }

  std::string record(const Fields& fields) {
    std::string text;
    for (const std::string& field : fields) {
      if (&field != fields.data()) text += options.separator;
      const bool needs_quotes = field.find_first_of("\"\r\n ,;|\t") != field.npos;
      const char* const blank = below(6) == 0 && options.separator != ' ' ? " " : "";
      text += blank;
      text += needs_quotes || below(5) == 0 ? quoted(field) : field;
      text += blank;
    }
    return text + line_end_;
  }
  static std::string quoted(const std::string& field) {
    std::string text = "\"";
    for (const char character : field) text += character == '"' ? "\"\"" : std::string(1, character);
    return text + "\"";
  }

  std::string line_end_;
};

}  // namespace

TEST_CASE("rows of CSV files are those of read_csv, bit for bit") {
  const auto system = std::make_shared<tests::CountedFileSystem>();
  add_file_system("counted-csv", system);
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const TemporaryFolder folder;
    const std::filesystem::path path = folder.path() / "x.csv";
    RandomCsv csv(seed);
    write_text(path, csv.text(static_cast<int>(2 + seed)));
    CAPTURE(open_file(path)->content());
    const Table table = read_csv(path, csv.options);
    const CsvRows rows({path}, {.csv = csv.options});
    check_same(rows, table, csv.random);
    check_same(CsvRows({Location("counted-csv:" + path.string())}, {.csv = csv.options}), table, csv.random);
    rows.write_index();
    const CsvRows indexed({path}, {.csv = csv.options});
    check_same(indexed, table, csv.random);
    CHECK(content_of(indexed) == content_of(rows));
    const Standardization expected = table.standardization(), found = indexed.standardization();
    for (std::size_t i = 0; i < expected.mean.size(); ++i) {
      CHECK(found.mean[i] == Approx(expected.mean[i]).epsilon(1e-12).margin(1e-12));
      CHECK(found.std[i] == Approx(expected.std[i]).epsilon(1e-12));
    }
    check_same(rows.standardized(expected), table.standardized(expected), csv.random);
  }
}

TEST_CASE("records that are cut anywhere go on in the next piece") {
  const std::string text = "\xef\xbb\xbf a,\"b\r\n\"\"c\"\"\" \r\n\r\n \n1,\r2,3\n\n\"\",\"x\ny\"\r\n , \n5,6";
  const auto records_of = [](CsvRecords& records, auto& found) {
    while (records.next()) {
      found.emplace_back(Fields(records.fields().begin(), records.fields().end()), records.line(), records.byte());
    }
  };
  std::vector<std::tuple<Fields, std::int64_t, std::uint64_t>> all;
  CsvRecords whole(text, ',', Location("x"));
  records_of(whole, all);
  REQUIRE(all.size() == 6);
  CHECK(all[0] == std::tuple(Fields{"a", "b\r\n\"c\""}, 1, 4));
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    CAPTURE(cut);
    std::vector<std::tuple<Fields, std::int64_t, std::uint64_t>> found;
    CsvRecords first(std::string_view(text).substr(0, cut), ',', Location("x"), {}, true);
    if (cut < 3) continue;  // pieces are longer than a mark of UTF-8
    records_of(first, found);
    const CsvPosition at = first.position();
    CsvRecords second(std::string_view(text).substr(static_cast<std::size_t>(at.byte)), ',', Location("x"), at);
    records_of(second, found);
    CHECK(found == all);
  }
}

TEST_CASE("rows of CSV files that are longer than a piece") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "x.csv";
  std::string text = "a,remark\n1,\"" + std::string(20 << 20, '\n') + "\"\n2,\n";
  text += "3,\"" + std::string((32 << 20) - text.size() + 5, 'x') + "\"\"\"\n4,\n";  // a piece ends among the quotes
  write_text(path, text);
  const CsvOptions options{.ignored = {"remark"}, .missing = MissingValues::refused};
  const CsvRows rows({path}, {.csv = options});
  std::mt19937 random(1);
  check_same(rows, read_csv(path, options), random);
  write_text(path, text + "5,x\nsix,\n");
  const std::string error = error_in([&] { CsvRows({path}, {.csv = options}); });
  CHECK_THAT(error, ContainsSubstring("line 20971527, column \"a\": \"six\" is no number") && ContainsSubstring("x.csv"));
  CHECK(error == error_in([&] { read_csv(path, options); }));
}

TEST_CASE("several CSV files are one dataset") {
  const TemporaryFolder folder;
  const std::vector<Location> files{folder.path() / "1.csv", folder.path() / "2.csv", folder.path() / "3.csv"};
  write_text(folder.path() / "1.csv", "a,k,y\n1,red,10\n2,NA,9\nNA,red,8\n");
  write_text(folder.path() / "2.csv", "a,k,y\n");
  write_text(folder.path() / "3.csv", "a,k,y\n4,blue,9\n9,red,7\n");
  const CsvOptions dropped{.label = "y", .categories = {"k"}, .missing = MissingValues::rows_dropped};
  const CsvRows rows(files, {.csv = dropped});
  CHECK(rows.size() == 3);
  CHECK(rows.feature_names() == Fields{"a", "k_blue", "k_red"});
  CHECK(rows.class_names() == Fields{"7", "9", "10"});
  const Loader loader(rows, {.batch = {.batch_size = 3}, .order = Order::sequential});
  const Rows batch = loader.load(0);
  CHECK(floats_in(batch.x) == std::vector<float>{1, 0, 1, 4, 1, 0, 9, 0, 1});
  CHECK(labels_in(batch) == std::vector<std::int32_t>{2, 1, 0});
  CHECK(loader.content() == content_of(rows));

  const CsvOptions filled{.target = "y", .ignored = {"k"}, .missing = MissingValues::filled_by_mean};
  const CsvRows numbers(files, {.csv = filled});
  write_text(folder.path() / "all.csv", "a,k,y\n1,red,10\n2,NA,9\nNA,red,8\n4,blue,9\n9,red,7\n");
  const Table all = read_csv(folder.path() / "all.csv", filled);
  std::mt19937 random(1);
  check_same(numbers, all, random);
  CHECK(numbers.standardization().std.front() == Approx(all.standardization().std.front()).epsilon(1e-14));
  CHECK_THROWS_WITH(numbers.collate(std::vector<std::int64_t>{5}, 0), ContainsSubstring("5 does not exist among 5"));
  CHECK(content_of(numbers.standardized(numbers.standardization())) != content_of(numbers));

  // Test rows have the classes and categories of the training rows.
  const CsvRows later({files[2]}, {.csv = dropped}, rows);
  CHECK(later.class_names() == rows.class_names());
  CHECK(floats_in(later.at(1).x) == std::vector<float>{9, 0, 1});
  CHECK(labels_in(later.at(1)) == std::vector<std::int32_t>{0});
  CHECK_THROWS_WITH(CsvRows({files[2]}, {.csv = dropped}, CsvRows({files[0]}, {.csv = dropped})),
                    ContainsSubstring("\"k\" holds \"blue\"") && ContainsSubstring("3.csv"));
  CHECK_THROWS_WITH(CsvRows({files[1]}, {.csv = dropped}), ContainsSubstring("no row but the first line"));
  write_text(folder.path() / "2.csv", "b,k,y\n");
  CHECK_THROWS_WITH(CsvRows(files, {.csv = dropped}), ContainsSubstring("not those of the first file") &&
                                                          ContainsSubstring("1.csv") && ContainsSubstring("2.csv"));
}

TEST_CASE("the index of a CSV file is of its options, and errors name file and line") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "x.csv";
  std::string text = "a,k\n";
  for (int row = 0; row < 100; ++row) text += fmt::format("{},{}\n", row, row % 7);
  write_text(path, text);
  const CsvOptions options{.label = "k"};
  CsvRows({path}, {.csv = options}).write_index();
  CHECK(CsvRows({path}).num_features() == 2);
  CHECK(CsvRows({path}, {.csv = options}).num_classes() == 7);
  for (const char* broken : {"a,k\n1,2\n\"3\n", "a,k\n1,2,3\n", "a,k\none,2\n", "a,k\n1,\n", "a,k\n1,1.5\n", "a,k\n", "",
                             "a\n1\n", "PAR1...PAR1", "a,k\n\"1\"x,2\n", "a,a\n1,2\n"}) {
    CAPTURE(broken);
    write_text(path, broken);
    const std::string error = error_in([&] { read_csv(path, options); });
    CHECK(error != "no error");
    CHECK(error_in([&] { CsvRows({path}, {.csv = options}); }) == error);
  }
  CHECK_THROWS_WITH(CsvRows({path}, {.csv = {.label = "a", .target = "b"}}), ContainsSubstring("not both"));
  CHECK_THROWS_AS(CsvRows({}), Error);

  // A file whose middle changes behind its index.
  const std::string long_text = "a,k\n" + std::string(70'000, '\n') + "1,2\n" + std::string(70'000, '\n') + "1,2\n";
  write_text(path, long_text);
  CsvRows({path}, {.csv = options}).write_index();
  std::string changed = long_text;
  changed[70'004] = 'x';
  write_text(path, changed);
  const CsvRows rows({path}, {.csv = options});
  CHECK_THROWS_WITH(rows.at(0), ContainsSubstring("byte 70004") && ContainsSubstring("x.csv.index"));
  std::string many = "k\n";
  for (int row = 0; row <= 1'000'000; ++row) many += fmt::format("{}\n", row);
  write_text(path, many);
  CHECK_THROWS_WITH(CsvRows({path}, {.csv = {.categories = {"k"}}}), ContainsSubstring("more than 1000000 different values"));
}
