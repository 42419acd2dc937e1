#include "catch.hpp"
#include "device/cuda/library.hpp"
#include "trireme/core/error.hpp"

using trireme::device::Library;

TEST_CASE("a library that is nowhere is an error that names it and its files") {
  CHECK_THROWS_WITH(Library("libabsent", {"libabsent.so.7", "libabsent.so"}),
                    ContainsSubstring("libabsent was not found") && ContainsSubstring("libabsent.so.7, libabsent.so"));
}

TEST_CASE("a function that a library lacks is an error that names both") {
  const Library library("C library", {"libc.so.6"});
  int (*getpid)() = nullptr;
  library.find("getpid", getpid);
  CHECK(getpid() > 0);
  CHECK_THROWS_WITH(library.find("no_such_function", getpid),
                    ContainsSubstring("this C library has no function no_such_function"));
}
