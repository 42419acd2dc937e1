// The main function of test programs that have none of their own.
#include "catch_session.hpp"

int main(int argc, char** argv) { return run_tests(argc, argv); }
