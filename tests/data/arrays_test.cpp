#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/data/loaders/evaluation_batches.hpp"
#include "trireme/data/loaders/loader.hpp"
#include "trireme/data/tables/read_npy.hpp"
#include "trireme/data/tables/series_windows.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

// A file as numpy.save writes it.
std::string npy(std::string_view header, std::string_view elements, char version = 1) {
  std::string text(header);
  text.resize((text.size() + 11 + 63) / 64 * 64 - 11, ' ');
  text += '\n';
  std::string length{static_cast<char>(text.size() % 256), static_cast<char>(text.size() / 256)};
  if (version > 1) length += std::string(2, '\0');
  return std::string("\x93NUMPY") + version + '\0' + length + text + std::string(elements);
}

template <typename T>
std::string bytes_of(std::vector<T> values, bool swapped = false) {
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  for (std::size_t at = 0; swapped && at < bytes.size(); at += sizeof(T)) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin() + static_cast<std::ptrdiff_t>(at + sizeof(T)));
  }
  return bytes;
}

std::string header_of(std::string_view element, std::string_view shape, bool columns_first = false) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", element, columns_first ? "True" : "False", shape);
}

template <typename T>
Tensor<T> read(const std::string& content) {
  const tests::TemporaryFolder folder;
  std::ofstream(folder.path() / "x.npy", std::ios::binary) << content;
  return read_npy<T>(folder.path() / "x.npy");
}

template <typename T>
std::string error_of(const std::string& content) {
  try {
    read<T>(content);
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("x.npy"));
    return error.what();
  }
  return "no error";
}

// Row i holds i and -i, its target is 100 + i.
Table rising(std::int64_t rows) {
  TableContent content{.feature_names = {"up", "down"}};
  for (std::int64_t i = 0; i < rows; ++i) {
    content.features.insert(content.features.end(), {static_cast<float>(i), static_cast<float>(-i)});
    content.targets.push_back(static_cast<float>(100 + i));
  }
  return Table(content);
}

}  // namespace

TEST_CASE("arrays of numpy are read, whatever their elements and order") {
  const auto matrix = read<float>(npy(header_of("<f4", "(2, 3)"), bytes_of<float>({1, 2, 3, 4, 5, 6})));
  CHECK(matrix.shape() == Shape{2, 3});
  CHECK(matrix.to_vector() == std::vector<float>{1, 2, 3, 4, 5, 6});
  const auto columns = bytes_of<float>({1, 4, 2, 5, 3, 6});
  CHECK(read<float>(npy(header_of("<f4", "(2, 3)", true), columns)).to_vector() == matrix.to_vector());
  const auto cube =
      read<std::int32_t>(npy(header_of("|u1", "(2, 2, 2)", true), bytes_of<std::uint8_t>({0, 1, 2, 3, 4, 5, 6, 7})));
  CHECK(cube.to_vector() == std::vector<std::int32_t>{0, 4, 2, 6, 1, 5, 3, 7});
  for (const char version : {'\1', '\2', '\3'}) {
    CHECK(read<double>(npy(header_of(">f8", "(2,)"), bytes_of<double>({0.5, -1e300}, true), version)).to_vector() ==
          std::vector<double>{0.5, -1e300});
  }
  CHECK(read<float>(npy(header_of("<f2", "(2,)"), bytes_of<float16>({float16(1.5f), float16(-2.0f)}))).to_vector() ==
        std::vector<float>{1.5f, -2});
  CHECK(read<double>(npy(header_of("<u8", "(1,)"), bytes_of<std::uint64_t>({1ULL << 63}))).item() == 0x1p63);
  CHECK(read<std::int64_t>(npy(header_of(">i8", "()"), bytes_of<std::int64_t>({-5}, true))).shape() == Shape{});
  CHECK(read<std::int32_t>(npy(header_of("<i8", "(2,)"), bytes_of<std::int64_t>({7, -9}))).at(1) == -9);
  CHECK(read<bool>(npy(header_of("|b1", "(2,)"), bytes_of<std::uint8_t>({1, 0}))).at(0));
  CHECK(read<float>(npy(header_of("|b1", "(2,)"), bytes_of<std::uint8_t>({1, 0}))).at(0) == 1);
  CHECK(std::isinf(read<float>(npy(header_of("<f8", "(1,)"), bytes_of<double>({HUGE_VAL}))).item()));
  CHECK(read<float>(npy(header_of("<f4", "(3, 0)"), "")).shape() == Shape{3, 0});
  CHECK(read<float>(npy(R"({"shape":(1,),"fortran_order":False,"descr":"<f4"})", bytes_of<float>({3}))).item() == 3);
}

TEST_CASE("arrays that a tensor does not hold are refused by what they are") {
  const std::string two = bytes_of<float>({1, 2});
  CHECK_THAT(error_of<float>(""), ContainsSubstring("not an array written by numpy.save"));
  CHECK_THAT(error_of<float>("PK\x03\x04 and so on"), ContainsSubstring("npz"));
  CHECK_THAT(error_of<float>(npy(header_of("<f4", "(2,)"), two.substr(1))),
             ContainsSubstring("shape (2)") && ContainsSubstring("7 bytes"));
  CHECK_THAT(error_of<float>(npy(header_of("<f4", "(2,)"), two + "x")), ContainsSubstring("more than one array"));
  CHECK_THAT(error_of<float>(npy(header_of("<f4", "(1,)"), two)), ContainsSubstring("more than one array"));
  CHECK_THAT(error_of<float>(npy(header_of("<f4", "(0,)"), two)), ContainsSubstring("more than one array"));
  CHECK_THAT(error_of<float>(npy(header_of("<f4", "(4611686018427387904, 4611686018427387904, 0)"), "")),
             ContainsSubstring("shape"));
  CHECK_THAT(error_of<float>(npy(header_of("<f4", "(9223372036854775807, 2)"), two)), ContainsSubstring("shape"));
  CHECK_THAT(error_of<float>(npy(header_of("<f4", "(1, 1, 1, 1, 1, 1, 2)"), two)), ContainsSubstring("7 dims"));
  for (const char* element : {"|O", "<U3", "<M8[s]", "<c8", "|S4", "<f16", "f4", "", "4", "<i3"}) {
    CAPTURE(element);
    CHECK_THAT(error_of<float>(npy(header_of(element, "(1,)"), two)), ContainsSubstring("can't be read as float32"));
  }
  CHECK_THAT(error_of<std::int32_t>(npy(header_of("<f4", "(2,)"), two)), ContainsSubstring("can't be read as int32"));
  CHECK_THAT(error_of<bool>(npy(header_of("|u1", "(1,)"), "x")), ContainsSubstring("can't be read as bool"));
  CHECK_THAT(error_of<std::int32_t>(npy(header_of("<i8", "(1,)"), bytes_of<std::int64_t>({1LL << 31}))),
             ContainsSubstring("2147483648, which int32 does not hold"));
  CHECK_THAT(error_of<std::int64_t>(npy(header_of("<u8", "(1,)"), bytes_of<std::uint64_t>({~0ULL}))),
             ContainsSubstring("does not hold"));
  CHECK_THAT(error_of<float>(npy(header_of("<f8", "(1,)"), bytes_of<double>({1e39}))), ContainsSubstring("does not hold"));
  CHECK_THAT(error_of<float>(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", two)),
             ContainsSubstring("records"));
  for (const char* header :
       {"", "{", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2}", "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} 1", "{'descr': '<f4 }", "{'a': 1}"}) {
    CAPTURE(header);
    CHECK_THAT(error_of<float>(npy(header, two)), ContainsSubstring("header of the array is damaged"));
  }
  CHECK_THAT(error_of<float>(npy(header_of("<f4", "(2,)"), two).substr(0, 40)), ContainsSubstring("ends in the header"));
  CHECK_THAT(error_of<float>(npy(header_of("<f4", "(2,)"), two, '\11')), ContainsSubstring("version 9"));
  CHECK_THROWS_WITH(read_npy<float>("absent.npy"), ContainsSubstring("No such file"));
}

TEST_CASE("windows of a series have the rows after them") {
  const SeriesWindows windows(rising(10), {.length = 3, .horizon = 2, .stride = 2});
  CHECK(windows.size() == 3);  // rows 0 to 4, 2 to 6, 4 to 8
  const SeriesBatch batch = on_device<Cpu>(windows.collate(std::vector<std::int64_t>{2, 0}, 5));
  CHECK(batch.x.shape() == Shape{2, 3, 2});
  CHECK(batch.x.to_vector() == std::vector<float>{4, -4, 5, -5, 6, -6, 0, 0, 1, -1, 2, -2});
  CHECK(batch.next.shape() == Shape{2, 2, 2});
  CHECK(batch.next.to_vector() == std::vector<float>{7, -7, 8, -8, 3, -3, 4, -4});
  CHECK(batch.targets.shape() == Shape{2, 2, 1});
  CHECK(batch.targets.to_vector() == std::vector<float>{107, 108, 103, 104});
  CHECK(batch.first_sample == 5);
  CHECK(batch.size() == 2);
  CHECK(SeriesWindows(rising(5), {.length = 3, .horizon = 2}).size() == 1);
  const SeriesWindows alone(rising(4), {.length = 2, .horizon = 0});
  CHECK(alone.size() == 3);
  CHECK(!alone.collate(std::vector<std::int64_t>{0}, 0).next.defined());
  CHECK(!alone.collate(std::vector<std::int64_t>{0}, 0).targets.defined());
  const Loader loader(windows, BatchOptions{.batch_size = 3});
  CHECK(loader.load(0).x.shape() == Shape{3, 3, 2});
  std::int64_t evaluated = 0;
  for (const SeriesBatch& part : evaluation_batches(windows, {.batch_size = 2})) evaluated += part.size();
  CHECK(evaluated == 3);
  CHECK(content_of(windows) != content_of(SeriesWindows(rising(10), {.length = 3, .horizon = 2})));
  CHECK(content_of(windows) != content_of(SeriesWindows(rising(11), windows.options())));
}

TEST_CASE("windows that can't be are refused") {
  for (const auto& options : {SeriesWindowOptions{}, SeriesWindowOptions{.length = 2, .horizon = -1},
                              SeriesWindowOptions{.length = 2, .stride = 0}}) {
    CHECK_THROWS_WITH(SeriesWindows(rising(9), options), ContainsSubstring("set .length above 0"));
  }
  CHECK_THROWS_WITH(SeriesWindows(rising(9), {.length = 8, .horizon = 2}),
                    ContainsSubstring("9 rows hold no window of 8 rows and 2"));
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_AS(SeriesWindows(rising(9), {.length = most, .horizon = most}), Error);
  CHECK_THROWS_WITH(SeriesWindows(rising(9), {.length = 8}).collate(std::vector<std::int64_t>{1}, 0),
                    ContainsSubstring("window 1 does not exist among 1"));
}
