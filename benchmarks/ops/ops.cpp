#include <omp.h>

#include <CLI/CLI.hpp>

#include "ops/measure.hpp"

// Time and rate of every operation at the sizes of one GPT and one ResNet, beside what memory and arithmetic of this machine
// allow.
int main(int argc, char** argv) {
  CLI::App options("Measures the operations of a GPT step and of a ResNet step");
  std::string filter;
  int threads = 1;
  options.add_option("--filter", filter, "only operations whose name contains this");
  options.add_option("--threads", threads, "OpenMP threads; the ceilings are those of one")->check(CLI::PositiveNumber);
  CLI11_PARSE(options, argc, argv);
  omp_set_num_threads(threads);
  Report report(measure_ceilings(), filter);
  const GptSizes sizes;
  measure_memory_bound(report, sizes);
  measure_products(report, sizes);
  measure_images(report);
}
