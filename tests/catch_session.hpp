#pragma once

// Runs the test cases of the program as its command line says; the exit code. Here so that only one file knows Catch2's runner,
// which takes half a minute to compile.
int run_tests(int argc, char** argv);
