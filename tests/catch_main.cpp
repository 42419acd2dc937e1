// The main of the tests, for those that bring none of their own.
#include "catch_session.hpp"

int main(int argc, char** argv) { return run_tests(argc, argv); }
