#include "trireme/data/sources/locations_of.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;
using data::locations_of;

namespace {

std::vector<std::string> names_of(std::string_view pattern, std::span<const std::string_view> endings = {}) {
  std::vector<std::string> names;
  for (const Location& location : locations_of(pattern, endings)) names.push_back(location.string());
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("patterns name files in order") {
  CHECK(names_of("a-{008..011}.tar") == Names{"a-008.tar", "a-009.tar", "a-010.tar", "a-011.tar"});
  CHECK(names_of("{8..11}") == Names{"8", "9", "10", "11"});
  CHECK(names_of("{7..7}") == Names{"7"});
  CHECK(names_of("{x,y}/{0..1}.t") == Names{"x/0.t", "x/1.t", "y/0.t", "y/1.t"});
  CHECK(names_of("s3://b/{x{1,2},z}.tar") == Names{"s3://b/x1.tar", "s3://b/x2.tar", "s3://b/z.tar"});
  CHECK(names_of("{a,}.t") == Names{"a.t", ".t"});
  CHECK(names_of("{18446744073709551614..18446744073709551615}") == Names{"18446744073709551614", "18446744073709551615"});
}

TEST_CASE("patterns that name nothing are refused") {
  for (const char* pattern : {"", "{0..9", "0..9}", "}{", "{9..0}", "{a..z}", "{0..-1}", "{0..18446744073709551616}",
                              "{0..99999999}", "{0..9999}{0..9999}", "{{0..1}"}) {
    INFO(pattern);
    CHECK_THROWS_AS(locations_of(pattern), Error);
  }
}

TEST_CASE("lists, folders and names with braces") {
  const tests::TemporaryFolder folder;
  const auto write = [&](const char* name, const char* text) {
    const std::filesystem::path path = folder.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  };
  write("b/2.tar", "");
  write("b/1.tar", "");
  write("b/1.json", "");
  write("{0..2}.tar", "");
  write("list.txt", "# shards\n\n b/{1..2}.tar  # of b\r\n@more.txt\nhttp://host/x.tar");
  write("more.txt", "\xef\xbb\xbf/c.tar\r\n");
  write("empty.txt", "# nothing\n");
  write("circle.txt", "@circle.txt\n");
  const std::string base = folder.path().string();
  constexpr std::array<std::string_view, 1> tar{".tar"}, npz{".npz"};
  CHECK(names_of(base + "/b", tar) == Names{base + "/b/1.tar", base + "/b/2.tar"});
  CHECK(names_of(base + "/{0..2}.tar") == Names{base + "/{0..2}.tar"});
  CHECK(names_of("@" + base + "/list.txt") == Names{base + "/b/1.tar", base + "/b/2.tar", "/c.tar", "http://host/x.tar"});
  CHECK_THROWS_AS(locations_of("@" + base + "/empty.txt"), Error);
  CHECK_THROWS_AS(locations_of("@" + base + "/circle.txt"), Error);
  CHECK_THROWS_AS(locations_of("@" + base + "/absent.txt"), Error);
  CHECK_THROWS_AS(locations_of(base + "/b", npz), Error);
}
