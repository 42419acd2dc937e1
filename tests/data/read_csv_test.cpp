#include "trireme/data/tables/read_csv.hpp"

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
    CHECK_THAT(error_of(std::string("a\n") + text + "\n"), ContainsSubstring("is not finite"));
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
  // A column without any value has no mean to fill in.
  const CsvOptions fill{.label = "k", .missing = MissingValues::filled_by_mean};
  CHECK_THAT(error_of("x,k\n1,a\n2,\n", fill), ContainsSubstring("line 3, column \"k\"") && ContainsSubstring("no mean"));
  CHECK_THAT(error_of("x,k\n,a\n,b\n", fill), ContainsSubstring("\"x\" has no values"));
  CHECK_THAT(error_of("a,b\n,1\n2,\n", {.missing = MissingValues::rows_dropped}), ContainsSubstring("each of the 2 rows"));
  // A column that is left out may miss values.
  CHECK(features(read("a,b\n1,\n", {.ignored = {"b"}})) == Floats{1});
  CHECK(features(read("a,b\n1,\n", {.ignored = {"b"}, .missing = MissingValues::rows_dropped})) == Floats{1});
}

TEST_CASE("columns that don't exist or have two roles are refused") {
  CHECK_THAT(error_of("a,b\n1,2\n", {.label = "class"}),
             ContainsSubstring(".label names the column \"class\"") && ContainsSubstring("the columns a, b"));
  CHECK_THAT(error_of("a;b\n1;2\n", {.label = "b"}), ContainsSubstring(".separator = ';'"));
  CHECK_THAT(error_of("5.1,0\n4.9,0\n", {.label = "class"}), ContainsSubstring(".header = false"));
  CHECK_THAT(error_of("a,b\n1,2\n", {.label = "a", .ignored = {"a"}}), ContainsSubstring("two roles"));
  CHECK_THAT(error_of("a,b\n1,2\n", {.ignored = {"b", "b"}}), ContainsSubstring("two roles"));
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
  CHECK_THAT(error_of("BZh11AY&SY..."), ContainsSubstring("packed by bzip2"));
  CHECK_THAT(error_of("PAR1...PAR1"), ContainsSubstring("Parquet"));
  CHECK(read("PAR1,PAR2\n1,2\n").num_features() == 2);  // names of columns, and no Parquet
  CHECK(read("BZh\n1\n").num_features() == 1);
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

TEST_CASE("whole numbers of any length are classes and categories of their own") {
  const char* text =
      "x,id\n1,36028797018963969\n2,36028797018963968\n3,36028797018963969.0\n4,9\n5,123456789012345678901234567891\n"
      "6,123456789012345678901234567890\n";
  const Table classes = read(text, {.label = "id"});
  CHECK(classes.class_names() == Names{"9", "36028797018963968", "36028797018963969", "123456789012345678901234567890",
                                       "123456789012345678901234567891"});
  CHECK(labels(classes) == Labels{2, 1, 2, 0, 4, 3});
  CHECK(read(text, {.categories = {"id"}}).num_features() == 6);
  CHECK(labels(read("x,y\n1,-3\n2,-20\n3,0\n4,-0\n5,1e1\n6,10\n7,+10\n8,0.1e2\n", {.label = "y"})) ==
        Labels{1, 0, 2, 2, 3, 3, 3, 3});
  CHECK_THAT(error_of("x,y\n1,36028797018963969.5\n", {.label = "y"}), ContainsSubstring("fractions"));
  CHECK(read("k\n0.30000000000000001\n0.3\n", {.categories = {"k"}}).num_features() == 2);
  // Texts beside numbers are compared as texts.
  CHECK(read("x,y\n1,1\n2,1.0\n3,one\n", {.label = "y"}).class_names() == Names{"1", "1.0", "one"});
}

TEST_CASE("numbers beyond a double are large or small by all of their digits") {
  const std::string zeros(400, '0');
  CHECK(features(read("a\n0." + zeros + "1\n1" + zeros + "e-400\n")) == Floats{0, 1});
  CHECK_THAT(error_of("a\n1" + zeros + "e-50\n"), ContainsSubstring("is not finite"));
}

TEST_CASE("columns whose names begin alike keep their categories") {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "towns.csv";
  std::ofstream(path) << "town,town_part,town_size,class\nulm,old,3,a\nbonn,west,5,b\nulm,west,4,a\n";
  const CsvOptions options{.label = "class", .categories = {"town", "town_part"}};
  const Table first = read_csv(path, options);
  CHECK(first.feature_names() == Names{"town_bonn", "town_ulm", "town_part_old", "town_part_west", "town_size"});
  CHECK(first.columns() == std::vector<TableColumn>{{"town", {"bonn", "ulm"}}, {"town_part", {"old", "west"}}, {"town_size"}});
  CHECK(features(read_csv(path, options, first)) == features(first));
  const auto [training, test] = first.split({.test = 0.4, .standardize = true});
  CHECK(read_csv(path, options, training).feature_names() == first.feature_names());
  CHECK_THROWS_WITH(read_csv(path, {.label = "class", .categories = {"town"}, .ignored = {"town_part"}}, first),
                    ContainsSubstring("not those of the first table"));
  CHECK_THROWS_WITH(read_csv(path, {.label = "class", .categories = {"town", "town_part", "town_size"}}, first),
                    ContainsSubstring("no categories of a column \"town_size\""));
}

TEST_CASE("no two features have the same name") {
  const CsvOptions options{.categories = {"k", "k_a"}};
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "alike.csv";
  std::ofstream(path) << "k,k_a,k_b\na_c,c,1\nb,c,2\nb_2,c,3\n";
  const Table table = read_csv(path, options);
  CHECK(table.feature_names() == Names{"k_a_c", "k_b_2", "k_b_2_2", "k_a_c_2", "k_b"});
  CHECK(features(table) == Floats{1, 0, 0, 1, 1, 0, 1, 0, 1, 2, 0, 0, 1, 1, 3});
  CHECK(features(read_csv(path, options, table)) == features(table));
}

TEST_CASE("what is standardized are the numbers of the file") {
  for (const char* start : {"16000000", "16000000000000"}) {  // seconds and nanoseconds since 1970
    CAPTURE(start);
    std::string text = "time,y\n";
    for (const char* end : {"00512", "01536", "02560", "03584"}) text += std::string(start) + end + ",1\n";
    const Table table = read(text, {.target = "y"});
    const Standardization standardization = table.standardization();
    CHECK(standardization.std.front() == Approx(1144.8662));
    const Floats expected = {-1.3416408f, -0.4472136f, 0.4472136f, 1.3416408f};
    CHECK(features(table.standardized(standardization)) == expected);
    CHECK(features(table.part(1, 3).standardized(standardization)) == Floats(expected.begin() + 1, expected.end()));
    const auto [training, test] = table.split({.test = 0.25, .shuffle = false, .standardize = true});
    CHECK(training.features()[1] == 0);
    CHECK(test.features()[0] == Approx(2.4494897));
  }
  const std::string filled = "a\n1600000001\n\n1600000003\nNA\n";
  const Table table = read(filled, {.missing = MissingValues::filled_by_mean});
  CHECK(table.standardization().mean.front() == 1600000002);
  CHECK(read("a\n1e-30\n3e-30\n").standardization().std.front() == Approx(1e-30));
}

TEST_CASE("decimal commas are read by an option") {
  const CsvOptions german{.label = "k", .separator = ';', .decimal = ','};
  const Table table = read("a;b;k\n1,5;-2e1;2\n+,25;3;10,0\n7;-1,5e-1;2,0\n", german);
  CHECK(features(table) == Floats{1.5f, -20, 0.25f, 3, 7, -0.15f});
  CHECK(table.class_names() == Names{"2", "10,0"});
  CHECK(labels(table) == Labels{0, 1, 0});
  CHECK(features(read("a,b\n\"1,5\",2\n", {.decimal = ','})) == Floats{1.5f, 2});
  CHECK_THAT(error_of("a\n1,5\n", {.separator = ';'}), ContainsSubstring("set .decimal = ','"));
  CHECK_THAT(error_of("a\n1.5\n", {.separator = ';', .decimal = ','}), ContainsSubstring("set .decimal = '.'"));
  CHECK_THAT(error_of("a\n1,5,5\n", {.separator = ';', .decimal = ','}), ContainsSubstring("is no number"));
  CHECK(read("k\n1,5\n1.500\n1,50\n", {.categories = {"k"}, .separator = ';', .decimal = ','}).feature_names() ==
        Names{"k_1,5", "k_1,50", "k_1.500"});
  CHECK_THAT(error_of("a\n1\n", {.decimal = ';'}), ContainsSubstring("decimal mark is '.' or ','"));
}
