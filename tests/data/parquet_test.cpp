#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "data/counted_file_system.hpp"
#include "fixtures.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/documents/tokenize.hpp"
#include "trireme/data/loaders/loader.hpp"
#include "trireme/data/shards/parquet_rows.hpp"
#include "trireme/data/shards/token_shard_writer.hpp"
#include "trireme/data/shards/token_shards.hpp"
#include "trireme/files/file_system.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

std::filesystem::path parquet_folder() { return tests::refs_folder().value() / "parquet"; }
std::filesystem::path parquet_file(const std::string& name) { return parquet_folder() / (name + ".parquet"); }

std::string as_hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    text += digits[static_cast<unsigned char>(byte) / 16];
    text += digits[static_cast<unsigned char>(byte) % 16];
  }
  return text;
}

// A value as expected.json has it.
nlohmann::json value_of(const ParquetRow& row, const ParquetColumn& column) {
  if (row.is_null(column.name)) return nullptr;
  switch (column.kind) {
    case ParquetKind::integer: return row.integer(column.name);
    case ParquetKind::number: return row.number(column.name);
    case ParquetKind::text:
      return column.name == "image.bytes" ? as_hex(row.text(column.name)) : std::string(row.text(column.name));
    case ParquetKind::integers: {
      const auto values = row.integers(column.name);
      return std::vector<std::int64_t>(values.begin(), values.end());
    }
    case ParquetKind::numbers: {
      const auto values = row.numbers(column.name);
      return std::vector<double>(values.begin(), values.end());
    }
  }
  return nullptr;
}

void check_row(const ParquetRow& row, const ParquetRows& rows, const nlohmann::json& expected) {
  REQUIRE(rows.columns().size() == expected.size());
  for (const ParquetColumn& column : rows.columns()) {
    nlohmann::json wanted = expected.at(column.name);
    if (column.name == "flag" && wanted.is_boolean()) wanted = wanted.get<bool>() ? 1 : 0;
    INFO(column.name << ": " << wanted);
    CHECK(value_of(row, column) == wanted);
  }
}

std::vector<std::byte> bytes_in(const std::filesystem::path& path) {
  const std::string content = open_file(path)->content();
  const auto bytes = std::as_bytes(std::span(content));
  return {bytes.begin(), bytes.end()};
}

void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

}  // namespace

TEST_CASE("rows of Parquet files have the values of pyarrow, in any order") {
  const nlohmann::json expected = tests::read_json(parquet_folder() / "expected.json");
  const std::vector<Location> files{parquet_file("groups"), parquet_file("none"), parquet_file("nulls"), parquet_file("more")};
  std::vector<nlohmann::json> wanted;
  for (const char* name : {"groups", "nulls", "more"})
    wanted.insert(wanted.end(), expected[name].begin(), expected[name].end());
  for (const std::int64_t cached_bytes : {0, 1 << 20}) {
    const ParquetRows rows(files, {.cached_bytes = cached_bytes});
    REQUIRE(rows.size() == std::ssize(wanted));
    CHECK(rows.neighbours() == 5);
    for (std::int64_t number = 0; number < rows.size(); ++number) {
      const std::int64_t index = number * 7 % rows.size();
      check_row(rows.at(index), rows, wanted[static_cast<std::size_t>(index)]);
    }
  }
  const ParquetRows some(files, {.columns = {"score", "image.size.width"}});
  CHECK(some.columns() ==
        std::vector<ParquetColumn>{{"score", ParquetKind::number}, {"image.size.width", ParquetKind::integer}});
  CHECK(some.at(3).number("score") == 3.0 / 7);
  CHECK(some.at(3).number("image.size.width") == 300);
  CHECK(content_of(some) != content_of(ParquetRows(files)));
}

TEST_CASE("a Parquet file of another file system is read by few requests, a row group at a time") {
  const auto system = std::make_shared<tests::CountedFileSystem>();
  add_file_system("countedparquet", system);
  const ParquetRows rows({Location("countedparquet://" + parquet_file("groups").string())}, {.columns = {"text"}});
  CHECK(system->requests() <= 2);
  const int before = system->requests();
  for (const std::int64_t row : {0, 3, 1, 2}) CHECK(rows.at(row).text("text").ends_with(std::to_string(row)));
  CHECK(system->requests() <= before + 3);  // the footer once more, and the column
  system->fail_from_now_on();
  CHECK(rows.at(1).text("text").ends_with("1"));  // in memory
  CHECK_THROWS_WITH(rows.at(9), ContainsSubstring("the connection is gone") && !ContainsSubstring("Parquet"));
  CHECK_THROWS_WITH(ParquetRows(rows.files()), ContainsSubstring("the connection is gone"));
}

TEST_CASE("threads read rows of the same groups") {
  const ParquetRows rows({parquet_file("groups"), parquet_file("more")}, {.columns = {"count", "text"}, .cached_bytes = 200});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::int64_t step = 0; step < 60; ++step) {
        const std::int64_t row = (step * 5 + thread) % rows.size();
        const std::string number = std::to_string(row < 11 ? row : row + 9);
        if (!rows.at(row).text("text").ends_with(number)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("numeric columns of Parquet files are rows of a table") {
  const ParquetRows rows({parquet_file("groups")});
  const ParquetTable table(rows, {.features = {"half", "small"}, .label = "flag", .target = "score"});
  const Loader loader(table, {.batch = {.batch_size = 3}, .order = Order::sequential});
  const Rows batch = loader.load(1);
  CHECK(std::vector(batch.x.data(), batch.x.data() + 6) == std::vector<float>{3.0F / 8, 252, 4.0F / 8, 251, 5.0F / 8, 250});
  CHECK(std::vector(batch.labels.data(), batch.labels.data() + 3) == std::vector<std::int32_t>{0, 1, 0});
  CHECK(batch.targets.data()[2] == static_cast<float>(5.0 / 7));
  CHECK(ParquetTable(rows, {.label = "flag"}).feature_names() ==
        std::vector<std::string>{"count", "small", "score", "half", "image.size.width"});
  CHECK_THROWS_WITH(ParquetTable(rows, {.features = {"text"}}), ContainsSubstring("\"text\" has texts, not numbers"));
  CHECK_THROWS_WITH(ParquetTable(rows, {.label = "score"}), ContainsSubstring("\"score\" has numbers, not numbers of classes"));
  CHECK_THROWS_WITH(ParquetTable(rows, {.target = "none"}), ContainsSubstring("\"none\" is not read"));
  const ParquetTable negative(rows, {.features = {"half"}, .label = "count"});
  CHECK_THROWS_WITH(Loader(negative, {.batch_size = 11}).load(0), ContainsSubstring("has the label -"));
}

TEST_CASE("columns and rows that are not there are errors that name them") {
  const ParquetRows rows({parquet_file("nulls")});
  CHECK_THROWS_WITH(rows.at(0).text("title"), ContainsSubstring("\"title\" is not read") && ContainsSubstring("text, kind"));
  CHECK_THROWS_WITH(rows.at(1).number("text"), ContainsSubstring("\"text\" has texts, not numbers"));
  CHECK_THROWS_WITH(rows.at(6).text("text"), ContainsSubstring("row 6 has no value") && ContainsSubstring("nulls.parquet"));
  CHECK_THROWS_WITH(rows.at(9), ContainsSubstring("row 9 does not exist among 9"));
  CHECK_THROWS_WITH(ParquetRows({parquet_file("groups")}, {.columns = {"day"}}),
                    ContainsSubstring("\"day\" has a type that is not read, date32") && ContainsSubstring("groups.parquet"));
  CHECK_THROWS_WITH(ParquetRows({parquet_file("groups")}, {.columns = {"title"}}), ContainsSubstring("no column \"title\""));
  CHECK_THROWS_WITH(ParquetRows(std::vector<Location>{}), ContainsSubstring("no files"));
  CHECK_THROWS_AS(ParquetRows({parquet_folder() / "missing.parquet"}), Error);
}

TEST_CASE("damaged Parquet files are refused by name") {
  const tests::TemporaryFolder folder;
  const auto whole = bytes_in(parquet_file("nulls"));
  const auto file = folder.path() / "a.parquet";
  const auto read = [&] {
    const ParquetRows rows({file});
    for (std::int64_t row = 0; row < std::min<std::int64_t>(rows.size(), 20); ++row) rows.at(row);
  };
  for (const std::size_t kept : {std::size_t{0}, std::size_t{3}, whole.size() / 2, whole.size() - 1}) {
    write_bytes(file, std::span(whole).first(kept));
    CHECK_THROWS_WITH(read(), ContainsSubstring("a.parquet") && ContainsSubstring("cannot be read"));
  }
  for (std::size_t at = 0; at < whole.size(); at += 11) {
    auto damaged = whole;
    damaged[at] ^= std::byte{0xff};
    write_bytes(file, damaged);
    try {
      read();
    } catch (const Error& error) {
      CHECK(error.fields().path == file.string());
    }
  }
}

TEST_CASE("texts of Parquet files are tokenized, and on from where a start was killed") {
  const tests::TemporaryFolder folder;
  const tokenizers::Tokenizer bytes = tokenizers::Tokenizer::bytes();
  const std::vector<std::string> inputs{parquet_file("groups").string(), parquet_file("nulls").string()};
  const TokenizeReport report = tokenize_files(inputs, bytes, folder.path() / "t", {.shard_tokens = 40});
  CHECK((report.documents == 17 && report.empty == 3 && report.shards > 2));  // three of the texts are null
  const nlohmann::json expected = tests::read_json(parquet_folder() / "expected.json");
  const auto text_of = [&](const TokenShards& shards, std::int64_t document) {
    std::string text;
    for (const std::int32_t token : shards.at(document)) text += static_cast<char>(token);
    return text;
  };
  const auto shards_in = [&] {
    std::vector<Location> files;
    for (std::int64_t shard = 0; shard < report.shards; ++shard) files.push_back(token_shard(folder.path() / "t", shard));
    return TokenShards(std::move(files));
  };
  CHECK(text_of(shards_in(), 7) == expected["groups"][7]["text"]);
  std::filesystem::remove(std::filesystem::path(token_shard(folder.path() / "t", report.shards - 1).string()));
  const TokenizeReport again = tokenize_files(inputs, bytes, folder.path() / "t", {.shard_tokens = 40});
  CHECK((again.shards == report.shards && again.shards_found == report.shards - 1 && again.documents == 17));
  CHECK(text_of(shards_in(), 16) == expected["nulls"][8]["text"]);
  CHECK_THROWS_WITH(tokenize_files(inputs, bytes, folder.path() / "u", {.text_field = "body"}),
                    ContainsSubstring("no column \"body\""));
}
