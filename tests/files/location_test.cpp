#include "trireme/files/location.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <sstream>
#include <string>
#include <type_traits>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"

using namespace trireme;

TEST_CASE("a path is named in three ways") {
  for (const char* text : {"/data/a.csv", "file:/data/a.csv", "file:///data/a.csv", "FILE://localhost/data/a.csv"}) {
    const Location location = text;
    CHECK(location.string() == "/data/a.csv");
    CHECK(location.scheme() == "file");
    CHECK(location.is_file_path());
    CHECK(location == Location("/data/a.csv"));
    CHECK(std::filesystem::path(location) == "/data/a.csv");
  }
  CHECK(Location("file:a.csv") == Location("a.csv"));
  CHECK(Location().empty());
}

TEST_CASE("texts and paths of all kinds make locations") {
  const std::filesystem::path path = "/data/a.csv";
  const std::string text = "/data/a.csv";
  for (const Location& location : {Location(path), Location(text), Location("/data/a.csv"), Location(std::string_view(text)),
                                   Location(std::filesystem::directory_entry(path))}) {
    CHECK(location == path);
  }
  static_assert(std::is_convertible_v<const char*, Location> && std::is_convertible_v<std::string, Location>);
  static_assert(!std::is_convertible_v<int, Location> && !std::is_convertible_v<std::nullptr_t, Location>);
}

TEST_CASE("a name with a colon is a path where ./ stands before it") {
  CHECK(Location("./set:a").is_file_path());
  CHECK(Location("/set:a").is_file_path());
  CHECK(Location("2026-11-28T12:00.csv").is_file_path());  // a scheme begins with a letter
  CHECK(Location("C:\\runs").string() == "C:\\runs");      // and has two of them
  const Location below = Location() / "set:a";
  CHECK(below.string() == "./set:a");
  CHECK(Location(below.string()) == below);
  CHECK(Location("file:set:a") == below);
  CHECK(Location("set").beside(":a") == below);
}

TEST_CASE("locations of every scheme join and come apart") {
  struct Row {
    const char *folder, *parent, *name;
  };
  for (const auto& [folder, parent, name] :
       {Row{"/data/set", "/data", "set"}, Row{"set", "", "set"}, Row{"/", "/", ""},
        Row{"s3://bucket/set", "s3://bucket/", "set"}, Row{"s3://bucket", "s3://bucket", ""},
        Row{"s3://bucket/", "s3://bucket/", ""}, Row{"memory:/a/set", "memory:/a", "set"},
        Row{"memory:/set", "memory:/", "set"}, Row{"memory:set", "memory:", "set"}, Row{"memory:", "memory:", ""}}) {
    const Location location = folder;
    CAPTURE(folder);
    CHECK(location.string() == folder);
    CHECK(location.parent().string() == parent);
    CHECK(location.name() == name);
    const Location file = location / "a" / "b.tar.gz";
    CHECK(file.name() == "b.tar.gz");
    CHECK(file.extension() == ".gz");
    CHECK(file.parent() == location / "a");
    CHECK(file.parent().parent() == Location(std::string(folder) == "s3://bucket" ? "s3://bucket/" : folder));
    CHECK(Location(file.string()) == file);
    CHECK(location / "/elsewhere" == Location("/elsewhere"));
  }
  CHECK(Location("s3://bucket/a") / "b" == Location("s3://bucket/a/b"));
  CHECK(Location("S3://bucket/A").string() == "s3://bucket/A");
  CHECK(Location("s3://bucket/a").after_scheme() == "//bucket/a");
  CHECK(Location("s3://bucket/a").beside(".tmp") == Location("s3://bucket/a.tmp"));
}

TEST_CASE("a location prints itself") {
  std::ostringstream stream;
  stream << Location("file:/a.csv");
  CHECK(stream.str() == "/a.csv");
  CHECK(fmt::format("{:>12}", Location("s3://b/a")) == "    s3://b/a");
}

TEST_CASE("what names no file here is refused") {
  CHECK_THROWS_WITH(Location("file://server/a.csv"), ContainsSubstring("another machine, server"));
  CHECK_THROWS_WITH(Location("file:"), ContainsSubstring("no path"));
  CHECK_THROWS_WITH(std::filesystem::path(Location("s3://b/a")),
                    ContainsSubstring("scheme s3:") && ContainsSubstring("s3://b/a"));
  CHECK_THROWS_WITH(add_file_system("file", posix_file_system()), ContainsSubstring("has a file system already"));
  for (const char* scheme : {"", "S3", "a:b", "3s", "a b", "a"}) {
    CHECK_THROWS_WITH(add_file_system(scheme, posix_file_system()), ContainsSubstring("is not a scheme"));
  }
  try {
    open_file("gopher://host/a.csv");
    FAIL("it was opened");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    CHECK(error.fields().path == "gopher://host/a.csv");
    CHECK_THAT(error.what(), ContainsSubstring("for gopher:") && ContainsSubstring("file:") && ContainsSubstring("./NAME"));
  }
  CHECK_FALSE(is_folder("gopher://host"));  // as "llama:1m", a size of a model
}

TEST_CASE("one place has many names") {
  CHECK(is_same("a/../b", "b"));
  CHECK(is_same("file:/data/./a", "/data/a"));
  CHECK_FALSE(is_same("/data/a", "/data/b"));
  CHECK_FALSE(is_same("", ""));
  CHECK_FALSE(is_same("/a", "memory:/a"));
}
