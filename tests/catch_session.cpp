#include "catch_session.hpp"

#include <cstdlib>
#include <vector>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

int run_tests(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  if (char* cases = std::getenv("TRIREME_TEST_CASES"); cases != nullptr && argc == 1) arguments.push_back(cases);
  return Catch::Session().run(static_cast<int>(arguments.size()), arguments.data());
}
