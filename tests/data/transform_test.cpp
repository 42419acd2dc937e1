#include "trireme/data/sources/transform.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

std::map<std::string, std::string> all_files(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    files[entry.path().filename()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

}  // namespace

TEST_CASE("a function is called once for each item, on any number of ranks, and what it gives lies in the same files") {
  const tests::TemporaryFolder folder;
  std::vector<int> numbers(95);
  for (std::size_t at = 0; at < numbers.size(); ++at) numbers[at] = static_cast<int>(at);
  const TransformOptions options{.file_items = 10, .ending = ".txt", .trailer = "end\n", .about = "numbers", .workers = 2};
  std::vector<std::atomic<int>> calls(numbers.size());
  const auto written = [&](int number) {
    ++calls[static_cast<std::size_t>(number)];
    return number % 9 == 4 ? std::string() : std::to_string(number) + "\n";
  };
  const auto run = [&](int ranks, const std::string& name, std::int64_t found) {
    testing::run_ranks(ranks, [&](const Group& world) {
      const TransformReport report = transform(world, numbers, folder.path() / name / "x", written, options);
      CHECK(report.files == 10);
      CHECK(report.files_found == found);
    });
  };
  run(1, "1", 0);
  const auto expected = all_files(folder.path() / "1");
  CHECK(expected.size() == 11);
  CHECK(expected.at("x-00000.txt") == "0\n1\n2\n3\n5\n6\n7\n8\n9\nend\n");
  CHECK(expected.at("x-00009.txt") == "90\n91\n92\n93\nend\n");
  CHECK(std::ranges::all_of(calls, [](int count) { return count == 1; }));
  run(3, "3", 0);
  CHECK(all_files(folder.path() / "3") == expected);

  // After a kill: some files, and half of one.
  for (const char* name : {"x-00001.txt", "x-00004.txt", "x-00009.txt"}) std::filesystem::remove(folder.path() / "3" / name);
  std::ofstream(folder.path() / "3/x-00004.txt.77-0.tmp") << "40\n";
  for (auto& count : calls) count = 0;
  run(2, "3", 7);
  CHECK(all_files(folder.path() / "3") == expected);
  for (std::size_t at = 0; at < calls.size(); ++at) CHECK(calls[at] == (at / 10 == 1 || at / 10 == 4 || at / 10 == 9 ? 1 : 0));
}

TEST_CASE("what a function throws is thrown on all ranks, and files of something else are refused") {
  const tests::TemporaryFolder folder;
  const std::vector<int> numbers(40);
  const auto fails = [&](std::atomic<int>& calls) {
    return [&calls](int) {
      if (++calls > 20) throw std::runtime_error("item 21");
      return std::string("x");
    };
  };
  std::atomic<int> calls = 0, thrown = 0;
  const Location prefix = folder.path() / "out/x";
  testing::run_ranks(2, [&](const Group& world) {
    try {
      transform(world, numbers, prefix, fails(calls), {.file_items = 5, .workers = 1});
    } catch (const std::exception&) {
      ++thrown;
    }
  });
  CHECK(thrown == 2);
  const auto good = [](int) { return std::string("x"); };
  testing::run_ranks(2, [&](const Group& world) {
    CHECK(transform(world, numbers, prefix, good, {.file_items = 5}).files_found > 0);
    CHECK_THROWS_AS(transform(world, numbers, prefix, good, {.file_items = 6}), Error);
    CHECK_THROWS_AS(transform(world, numbers, prefix, good, {.file_items = 5, .about = "other"}), Error);
    CHECK_THROWS_AS(transform(world, std::vector<int>(41), prefix, good, {.file_items = 5}), Error);
    CHECK_THROWS_AS(transform(world, numbers, folder.path() / "other", good, {.file_items = 0}), Error);
    CHECK(transform(world, std::vector<int>(), folder.path() / "none", good).files == 0);
  });
}
