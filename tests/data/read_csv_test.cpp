#include "trireme/data/read_csv.hpp"

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

using Names = std::vector<std::string>;
using Labels = std::vector<std::int32_t>;
using Floats = std::vector<float>;

Table read(std::string_view text, const CsvOptions& options = {}) {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "table.csv";
  std::ofstream(path, std::ios::binary) << text;
  return read_csv(path, options);
}

std::string error_of(std::string_view text, const CsvOptions& options = {}) {
  try {
    read(text, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Floats features(const Table& table) { return {table.features().begin(), table.features().end()}; }
Labels labels(const Table& table) { return {table.labels().begin(), table.labels().end()}; }
Floats targets(const Table& table) { return {table.targets().begin(), table.targets().end()}; }

}  // namespace

TEST_CASE("a file of numbers and names of classes is read") {
  const Table table = read("length,class,width\n1.5,oak,2\n-3e1,elm,+.5\n0,oak,7\n", {.label = "class"});
  CHECK(table.size() == 3);
  CHECK(table.feature_names() == Names{"length", "width"});
  CHECK(features(table) == Floats{1.5f, 2, -30, 0.5f, 0, 7});
  CHECK(table.class_names() == Names{"elm", "oak"});
  CHECK(labels(table) == Labels{1, 0, 1});
  CHECK(table.targets().empty());
}

TEST_CASE("the same rows, however they are written") {
  const Floats expected = {1, 2, 3, 4};
  for (const char* text :
       {"a,b\n1,2\n3,4\n", "a,b\n1,2\n3,4", "a,b\r\n1,2\r\n3,4\r\n",
        "\xef\xbb\xbf"
        "a,b\n1,2\n3,4\n",
        "\n\na,b\n\n1,2\n  \n3,4\n\n", " a , b\n 1,\t2 \n3 , 4\n", "\"a\",\"b\"\n\"1\",\"2\"\n3,\"4\"", "a,b\r1,2\r3,4\r"}) {
    CAPTURE(text);
    const Table table = read(text);
    CHECK(table.feature_names() == Names{"a", "b"});
    CHECK(features(table) == expected);
  }
  CHECK(features(read("a;b\n1;2\n3;4\n", {.separator = ';'})) == expected);
  CHECK(features(read("a\tb\n1\t2\n3\t4\n", {.separator = '\t'})) == expected);
  CHECK(features(read("a b\n1 2\n3 4\n", {.separator = ' '})) == expected);
  const Table unnamed = read("1,2\n3,4\n", {.header = false});
  CHECK(features(unnamed) == expected);
  CHECK(unnamed.feature_names() == Names{"0", "1"});
  CHECK(labels(read("1,2\n3,4\n", {.label = "1", .header = false})) == Labels{0, 1});
  CHECK(features(read("made by hand\n\na,b\n1,2\n3,4\n", {.skipped_lines = 2})) == expected);
  CHECK_THAT(error_of("a\n1\n", {.skipped_lines = 9}), ContainsSubstring("holds no lines"));
  CHECK_THAT(error_of("x\na\n1\n\"", {.skipped_lines = 1}), ContainsSubstring("line 4"));
}

TEST_CASE("quoted values hold separators, quotes and line ends") {
  const Table table =
      read("x,kind\n1,\"a,b\"\n2,\"say \"\"no\"\"\"\n3,\"two\nlines\"\n4,5\" pipe\n5,\"\"\"\"\n", {.label = "kind"});
  CHECK(table.class_names() == Names{"\"", "5\" pipe", "a,b", "say \"no\"", "two\nlines"});
  CHECK(labels(table) == Labels{2, 3, 4, 1, 0});
  CHECK_THAT(error_of("x\n1\n\"2\n3\n"), ContainsSubstring("line 3: a quoted value does not end"));
  CHECK_THAT(error_of("x,y\n\"1\"2,3\n"), ContainsSubstring("line 2: there is text behind the quoted value \"1\""));
  // The line of an error counts the ones inside of values.
  CHECK_THAT(error_of("x,k\n1,\"a\nb\"\noak,c\n", {.label = "k"}), ContainsSubstring("line 4, column \"x\""));
}

TEST_CASE("classes that are whole numbers are in the order of these") {
  const Table table = read("x,y\n1,10\n1,9\n1,-1\n1,9.0\n1,010\n", {.label = "y"});
  CHECK(table.class_names() == Names{"-1", "9", "010"});
  CHECK(labels(table) == Labels{2, 1, 0, 1, 2});
  const Table texts = read("x,y\n1,10\n1,9\n1,b\n", {.label = "y"});
  CHECK(texts.class_names() == Names{"10", "9", "b"});
  CHECK_THAT(error_of("x,y\n1,1.5\n1,2\n", {.label = "y"}),
             ContainsSubstring("\"y\" holds fractions") && ContainsSubstring(".target = \"y\""));
}

TEST_CASE("a target is numbers") {
  const Table table = read("x,price\n1,2.5\n2,-1\n", {.target = "price"});
  CHECK(targets(table) == Floats{2.5f, -1});
  CHECK(table.num_classes() == 0);
  CHECK_THAT(error_of("x,price\n1,cheap\n", {.target = "price"}), ContainsSubstring("\"cheap\" is no number"));
}

TEST_CASE("categories become features of 0 and 1, in place") {
  const Table table = read("a,colour,b\n1,red,2\n3,blue,4\n5,red,6\n", {.categories = {"colour"}});
  CHECK(table.feature_names() == Names{"a", "colour_blue", "colour_red", "b"});
  CHECK(features(table) == Floats{1, 0, 1, 2, 3, 1, 0, 4, 5, 0, 1, 6});
  const Table numbers = read("k\n10\n9\n9.0\n", {.categories = {"k"}});
  CHECK(numbers.feature_names() == Names{"k_9", "k_10"});
  CHECK(features(numbers) == Floats{0, 1, 1, 0, 1, 0});
  std::string many = "k\n";
  for (int i = 0; i <= 1000; ++i) many += std::to_string(i) + "\n";
  CHECK_THAT(error_of(many, {.categories = {"k"}}), ContainsSubstring("1001 different values"));
}

TEST_CASE("a second file has the classes and categories of the first") {
  const tests::TemporaryFolder folder;
  const auto read_like = [&](std::string_view text, CsvOptions options, const Table& like) {
    const auto path = folder.path() / "second.csv";
    std::ofstream(path, std::ios::binary) << text;
    return read_csv(path, options, like);
  };
  const CsvOptions options{.label = "class", .categories = {"colour"}};
  const Table first = read("colour,colour_code,class\nred,1,oak\nblue,2,elm\n", options);
  const Table second = read_like("colour,colour_code,class\nred,5,oak\n", options, first);
  CHECK(second.feature_names() == Names{"colour_blue", "colour_red", "colour_code"});
  CHECK(features(second) == Floats{0, 1, 5});
  CHECK(second.class_names() == first.class_names());
  CHECK(labels(second) == Labels{1});
  CHECK(read_like("colour,colour_code\nblue,5\n", {.categories = {"colour"}}, first).num_classes() == 0);
  CHECK_THROWS_WITH(read_like("colour,colour_code,class\ngreen,5,oak\n", options, first),
                    ContainsSubstring("\"colour\" holds \"green\"") && ContainsSubstring("second.csv"));
  CHECK_THROWS_WITH(read_like("colour,colour_code,class\nred,5,ash\n", options, first),
                    ContainsSubstring("\"class\" holds \"ash\""));
  CHECK_THROWS_WITH(read_like("colour,size,class\nred,5,oak\n", options, first),
                    ContainsSubstring("not those of the first table"));
}

TEST_CASE("a text where a number should be names its place") {
  const std::string error = error_of("a,colour\n1,2\n3,red\n");
  CHECK_THAT(error, ContainsSubstring("line 3, column \"colour\": \"red\" is no number"));
  CHECK_THAT(error, ContainsSubstring(".categories = {\"colour\"}") && ContainsSubstring("table.csv"));
  for (const char* text : {"1,5", "0x10", "1e", "--1", "+-1", "1 2", "1_000", "true", "e5", "."}) {
    CAPTURE(text);
    CHECK_THAT(error_of(std::string("a;b\n1;") + text + "\n", {.separator = ';'}), ContainsSubstring("is no number"));
  }
  for (const char* text : {"inf", "-inf", "1e39", "1e999", "-1e999"}) {
    CAPTURE(text);
    CHECK_THAT(error_of(std::string("a\n") + text + "\n"), ContainsSubstring("is no finite number"));
  }
  CHECK(features(read("a\n1e-999\n1e-310\n")) == Floats{0, 0});
}

TEST_CASE("missing values are refused, filled or left out") {
  for (const char* missing : {"", "?", "NA", "nan", "NULL", "\"\""}) {
    CAPTURE(missing);
    const std::string text = std::string("a,b\n1,2\n") + missing + ",4\n3,9\n";
    CHECK_THAT(error_of(text), ContainsSubstring("line 3, column \"a\": a missing value") && ContainsSubstring("rows_dropped"));
    CHECK(features(read(text, {.missing = MissingValues::rows_dropped})) == Floats{1, 2, 3, 9});
    CHECK(features(read(text, {.missing = MissingValues::filled_by_mean})) == Floats{1, 2, 2, 4, 3, 9});
  }
  CHECK(features(read("a\n-999\n1\n", {.missing = MissingValues::rows_dropped, .missing_values = {"-999"}})) == Floats{1});
  CHECK(read("x,k\n1,None\n2,Some\n", {.label = "k", .missing_values = {}}).class_names() == Names{"None", "Some"});
  // What has no mean is not made up.
  const CsvOptions fill{.label = "k", .missing = MissingValues::filled_by_mean};
  CHECK_THAT(error_of("x,k\n1,a\n2,\n", fill), ContainsSubstring("line 3, column \"k\"") && ContainsSubstring("no mean"));
  CHECK_THAT(error_of("x,k\n,a\n,b\n", fill), ContainsSubstring("\"x\" has no values"));
  CHECK_THAT(error_of("a,b\n,1\n2,\n", {.missing = MissingValues::rows_dropped}), ContainsSubstring("each of the 2 rows"));
  // A column that is left out may miss values.
  CHECK(features(read("a,b\n1,\n", {.ignored = {"b"}})) == Floats{1});
  CHECK(features(read("a,b\n1,\n", {.ignored = {"b"}, .missing = MissingValues::rows_dropped})) == Floats{1});
}

TEST_CASE("columns that don't exist or have two uses are refused") {
  CHECK_THAT(error_of("a,b\n1,2\n", {.label = "class"}),
             ContainsSubstring(".label names the column \"class\"") && ContainsSubstring("the columns a, b"));
  CHECK_THAT(error_of("a;b\n1;2\n", {.label = "b"}), ContainsSubstring(".separator = ';'"));
  CHECK_THAT(error_of("5.1,0\n4.9,0\n", {.label = "class"}), ContainsSubstring(".header = false"));
  CHECK_THAT(error_of("a,b\n1,2\n", {.label = "a", .ignored = {"a"}}), ContainsSubstring("two uses"));
  CHECK_THAT(error_of("a,b\n1,2\n", {.ignored = {"b", "b"}}), ContainsSubstring("two uses"));
  CHECK_THAT(error_of("a,b\n1,2\n", {.label = "a", .target = "b"}), ContainsSubstring("not both"));
  CHECK_THAT(error_of("a,a\n1,2\n"), ContainsSubstring("two columns have the name \"a\""));
  CHECK_THAT(error_of("0,0\n1,2\n"), ContainsSubstring("\"0\"") && ContainsSubstring(".header = false"));
  CHECK_THAT(error_of("a,b\n1,2\n", {.label = "a", .ignored = {"b"}}), ContainsSubstring("no column is left as a feature"));
  CHECK_THAT(error_of(",a\n0,2\n"), ContainsSubstring("no name") && ContainsSubstring(".ignored = {\"Unnamed: 0\"}"));
  CHECK(features(read(",a\n0,2\n", {.ignored = {"Unnamed: 0"}})) == Floats{2});
}

TEST_CASE("rows of other lengths are refused by their line") {
  CHECK_THAT(error_of("a,b\n1,2\n\n3\n"), ContainsSubstring("line 4 has 1 values, the first line 2"));
  CHECK_THAT(error_of("a,b\n1,2,3\n"), ContainsSubstring("line 2 has 3 values"));
  CHECK_THAT(error_of("a,b\n1,2,\n"), ContainsSubstring("line 2 has 3 values"));
}

TEST_CASE("what is no table of text is refused by its kind") {
  using namespace std::string_view_literals;
  CHECK_THAT(error_of("\x1f\x8b\x08..."), ContainsSubstring("packed by gzip") && ContainsSubstring("gunzip"));
  CHECK_THAT(error_of("PK\x03\x04..."), ContainsSubstring("zip archive or a spreadsheet"));
  CHECK_THAT(error_of("\xff\xfe"
                      "a\0,\0"sv),
             ContainsSubstring("UTF-16"));
  CHECK_THAT(error_of("a,b\n1,\0\n"sv), ContainsSubstring("no text") && ContainsSubstring("byte 6"));
  for (const char* text : {"", "\n\n", "\xef\xbb\xbf", "  "}) CHECK_THAT(error_of(text), ContainsSubstring("holds no lines"));
  CHECK_THAT(error_of("a,b\n"), ContainsSubstring("no row but the first line"));
  CHECK_THAT(error_of("a\n1\n", {.separator = '"'}), ContainsSubstring("can't separate"));
  const tests::TemporaryFolder folder;
  CHECK_THROWS_WITH(read_csv(folder.path() / "absent.csv"),
                    ContainsSubstring("absent.csv") && ContainsSubstring("No such file"));
  CHECK_THROWS_AS(read_csv(folder.path()), Error);
}
