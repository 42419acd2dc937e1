#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/loaders/document_loader.hpp"
#include "trireme/data/loaders/loader.hpp"
#include "trireme/data/loaders/token_windows.hpp"
#include "trireme/data/loaders/window_loader.hpp"
#include "trireme/data/text/text.hpp"
#include "trireme/files/file_content.hpp"

using namespace trireme;
using namespace trireme::data;
using tests::TemporaryFolder;

namespace {

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

struct Waves {
  friend std::string content_of(const Waves&) { return "waves"; }
  std::int64_t size() const { return 8; }
  int at(std::int64_t index) const { return static_cast<int>(index); }
};

}  // namespace

TEST_CASE("the content at a path is that of a file, or of all files in a folder with their names") {
  const TemporaryFolder folder;
  const std::filesystem::path data = folder.path() / "data";
  write_text(data / "a/x.csv", "1,2\n");
  CHECK(content_at(data / "a/x.csv") == content_of(std::string_view("1,2\n")));
  const std::string one = content_at(data);
  CHECK(one.starts_with("1 files of 4 bytes, digest "));
  write_text(data / ".cache", "of an editor");
  CHECK(content_at(data) == one);
  std::filesystem::rename(data / "a/x.csv", data / "a/y.csv");
  CHECK(content_at(data) != one);
  std::filesystem::rename(data / "a/y.csv", data / "a/x.csv");
  write_text(folder.path() / "elsewhere/z.csv", "3\n");
  std::filesystem::create_directory_symlink(folder.path() / "elsewhere", data / "linked");
  std::filesystem::create_directory_symlink(data, data / "a/loop");
  const std::string two = content_at(data);
  CHECK(two.starts_with("2 files of 6 bytes"));
  write_text(folder.path() / "elsewhere/z.csv", "4\n");
  CHECK(content_at(data) != two);
  CHECK_THROWS_AS(content_at(data / "none"), Error);
  CHECK(content_at(folder.path() / "data/a") != content_at(folder.path() / "elsewhere"));
}

TEST_CASE("loaders say what they read") {
  const std::vector<std::int32_t> numbers{1, 2, 3, 4, 5, 6, 7, 8};
  const auto tokens = TokenDataset::from_tokens(numbers);
  const auto content = [](const TokenDataset& dataset) {
    return WindowLoader(dataset, {.batch = {.batch_size = 2}, .length = 2}).content();
  };
  CHECK(content(tokens) == content_of(tokens));
  CHECK(content(tokens.part(0, 7)) != content(tokens));
  CHECK(content(tokens.part(0, 7)) != content(tokens.part(1, 7)));
  CHECK(Loader(TokenWindows(tokens, 2), BatchOptions{.batch_size = 2}).content() == content_of(tokens));
  CHECK(Loader(Waves(), BatchOptions{.batch_size = 2}).content() == "waves");
  const auto says = [](const auto& loader) {
    return requires { loader.content(); };
  };
  CHECK_FALSE(says(Loader(std::vector<int>(8), BatchOptions{.batch_size = 2})));
  Documents documents;
  documents.add(numbers);
  const std::string before = DocumentLoader(DocumentRows(documents), {.batch = {.batch_size = 1}}).content();
  documents.add(numbers);
  CHECK(DocumentLoader(DocumentRows(documents), {.batch = {.batch_size = 1}}).content() != before);
}

TEST_CASE("of a file of tokens the content says which part it is") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "tokens";
  write_text(path, std::string("\1\0\2\0\7\0\4\0", 8));
  const auto tokens = TokenDataset::map(path, DType::uint16);
  CHECK(content_of(tokens) == "uint16 tokens 0 to 4 of " + content_at(path));
  CHECK(content_of(tokens.part(1, 3).part(1, 2)) == "uint16 tokens 2 to 4 of " + content_at(path));
  CHECK(tokens.largest() == 7);
  CHECK(tokens.part(0, 2).largest() == 2);
  CHECK(TokenDataset::from_tokens({}).largest() == 0);
}

TEST_CASE("a number of a large file is kept, and computed again when the file has changed") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "tokens.bin";
  write_text(path, "tokens");
  std::filesystem::resize_file(path, std::uint64_t{65} << 20);
  int computed = 0;
  const auto number = [&](const char* name) {
    return number_of_file(path, name, [&](std::span<const std::byte> bytes) {
      ++computed;
      return bytes.size() + static_cast<std::uint64_t>(bytes[40'000'000]);
    });
  };
  CHECK(number("a") == std::uint64_t{65} << 20);
  number("a");
  CHECK(computed == 2);  // it was written just now, and may be again
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  number("a");
  CHECK(number("a") == std::uint64_t{65} << 20);
  CHECK(computed == 3);
  number("b");
  number("b");
  number("a");
  CHECK(computed == 4);
  const auto time = std::filesystem::last_write_time(path);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(40'000'000).put('\5');
  std::filesystem::last_write_time(path, time);  // it looks as old as before
  CHECK(number("a") == (std::uint64_t{65} << 20) + 5);
  const std::filesystem::path kept = folder.path() / ".tokens.bin.trireme.json";
  CHECK(std::filesystem::exists(kept));
  std::ofstream(kept) << "{\"identity\":";
  CHECK(number("a") == (std::uint64_t{65} << 20) + 5);
}

TEST_CASE("where a folder can't be written, numbers are kept in the user's cache") {
  const TemporaryFolder folder;
  const TemporaryFolder cache;
  const std::filesystem::path path = folder.path() / "tokens.bin";
  write_text(path, "tokens");
  std::filesystem::resize_file(path, std::uint64_t{65} << 20);
  std::filesystem::create_directory(folder.path() / ".tokens.bin.trireme.json");  // no file can be there
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before == nullptr ? "" : before;
  setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  int computed = 0;
  for (int time = 0; time < 2; ++time) {
    number_of_file(path, "a", [&](std::span<const std::byte>) {
      ++computed;
      return std::uint64_t{1};
    });
  }
  CHECK(computed == 1);
  before == nullptr ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", kept.c_str(), 1);
}
