#pragma once

// Runs the test cases of the program as its command line says, or without one TRIREME_TEST_CASES: "~[many]". The exit code.
// Here so that only one file compiles Catch2's runner, which is long.
int run_tests(int argc, char** argv);
