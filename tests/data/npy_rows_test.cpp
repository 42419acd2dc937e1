#include "trireme/data/tables/npy_rows.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/counted_file_system.hpp"
#include "data/npz_files.hpp"
#include "data/tar_files.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/loaders/loader.hpp"
#include "trireme/data/tables/read_npy.hpp"

using namespace trireme;
using namespace trireme::data;
using tests::npy_file;
using tests::npz_file;
using tests::TemporaryFolder;
using tests::write_text;

namespace {

template <typename T>
std::string array_of(std::string_view element, std::string_view shape, const std::vector<T>& values,
                     bool columns_first = false) {
  return npy_file(
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", element, columns_first ? "True" : "False", shape),
      {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

std::string error_of(const std::string& content, const std::string& array = {}) {
  const TemporaryFolder folder;
  write_text(folder.path() / "x.npz", content);
  try {
    NpyRows<float>(folder.path() / "x.npz", array).at(0);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::corrupt_file);
    CHECK_THAT(error.what(), ContainsSubstring("x.npz"));
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("rows of an array are items") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "x.npy";
  std::vector<std::int16_t> values(24);
  for (std::size_t at = 0; at < values.size(); ++at) values[at] = static_cast<std::int16_t>(at * at);
  write_text(path, array_of("<i2", "(4, 2, 3)", values));
  const NpyRows<float> rows(path);
  CHECK(rows.size() == 4);
  CHECK(rows.row_shape() == Shape{2, 3});
  CHECK(rows.at(2).to_vector() == std::vector<float>{144, 169, 196, 225, 256, 289});
  const std::vector<std::int64_t> order{3, 0};
  const auto batch = rows.collate(order, 7);
  CHECK(batch.x.shape() == Shape{2, 2, 3});
  CHECK(batch.x.to_vector()[6] == 0);
  CHECK(batch.x.to_vector()[0] == 324);
  CHECK_THROWS_WITH(rows.at(4), ContainsSubstring("row 4 does not exist among 4"));
  const Loader loader(rows, {.batch = {.batch_size = 2}, .order = Order::sequential});
  CHECK(loader.load(1).x.to_vector()[0] == 144);
  CHECK_THAT(loader.content(), ContainsSubstring("4 rows of"));

  const auto system = std::make_shared<tests::CountedFileSystem>();
  add_file_system("counted-rows", system);
  const NpyRows<double> far(Location("counted-rows:" + path.string()));
  const int before = system->requests();
  CHECK(far.at(3).to_vector()[5] == 529);
  CHECK(system->requests() == before + 1);

  write_text(path, array_of<std::int64_t>(">i8", "(2,)", {0x0700000000000000, 0}, true));
  CHECK(NpyRows<std::int32_t>(path).at(0).item() == 7);
  write_text(path, array_of<float>("<f4", "(3, 0)", {}));
  CHECK(NpyRows<float>(path).at(2).shape() == Shape{0});
  write_text(path, array_of<std::int64_t>("<i8", "(2,)", {1, std::int64_t{1} << 40}));
  CHECK(NpyRows<std::int32_t>(path).at(0).item() == 1);
  CHECK_THROWS_WITH(NpyRows<std::int32_t>(path).at(1), ContainsSubstring("which int32 does not hold"));
  CHECK_THAT(error_of(array_of<float>("<f4", "()", {1})), ContainsSubstring("a single number"));
  CHECK_THAT(error_of(array_of<float>("<f4", "(2, 1)", {1, 2}, true)), ContainsSubstring("ascontiguousarray"));
  CHECK_THAT(error_of(array_of<float>("<f4", "(2,)", {1})), ContainsSubstring("shape (2)"));
  CHECK_THAT(error_of(array_of<float>("<f4", "(2,)", {1, 2}), "x"), ContainsSubstring("no archive (npz)"));
}

TEST_CASE("arrays of numpy.savez are read by their names") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "x.npz";
  const std::string x = array_of<float>("<f4", "(2, 3)", {0, 1, 2, 3, 4, 5}),
                    y = array_of<std::int64_t>("<i8", "(2,)", {7, -9});
  for (const bool wide : {false, true}) {
    write_text(path, npz_file({{"x", x}, {"of/y", y}}, wide));
    CHECK(NpyRows<float>(path, "x").at(1).to_vector() == std::vector<float>{3, 4, 5});
    CHECK(NpyRows<std::int32_t>(path, "of/y").at(1).item() == -9);
    CHECK(read_npy<float>(path, "x").to_vector() == std::vector<float>{0, 1, 2, 3, 4, 5});
    CHECK(read_npy<std::int32_t>(path, "of/y").to_vector() == std::vector<std::int32_t>{7, -9});
  }
  const std::string archive = npz_file({{"x", x}, {"y", y}});
  std::string commented = archive + "PK\5\6 in a comment";
  commented[archive.size() - 2] = 17;
  CHECK(error_of(commented, "x") == "no error");
  CHECK_THAT(error_of(archive + "more", "x"), ContainsSubstring("damaged"));
  CHECK_THAT(error_of(archive), ContainsSubstring("which?") && ContainsSubstring("its arrays are x, y"));
  CHECK_THAT(error_of(archive, "z"), ContainsSubstring("no array \"z\"") && ContainsSubstring("x, y"));
  CHECK_THAT(error_of(npz_file({{"x", x, 8}}), "x"), ContainsSubstring("\"x\" is packed") && ContainsSubstring("numpy.savez"));
  for (const std::size_t cut : {std::size_t{4}, archive.size() / 2, archive.size() - 1, archive.size() - 22}) {
    CHECK_THAT(error_of(archive.substr(0, cut), "x"), ContainsSubstring("damaged"));
  }
  CHECK_THAT(error_of(npz_file({{"x", "no array"}}), "x"), ContainsSubstring("is not an array written by numpy.save"));
}
