#include <omp.h>

#include "measurement/command_line.hpp"
#include "ops/measure.hpp"

// Time and rate of every operation at the sizes of one GPT and one ResNet, beside what memory and arithmetic of this machine
// allow.
int main(int argc, char** argv) {
  CommandLine command("Measures the operations of a GPT step and of a ResNet step");
  std::string filter;
  int threads = 1;
  command.option("--filter", filter, "only operations whose name contains this");
  command.option("--threads", threads, "OpenMP threads; the ceilings are those of one");
  if (const auto code = command.parse(argc, argv)) return *code;
  omp_set_num_threads(threads);
  Report report(measure_ceilings(), filter);
  const GptSizes sizes;
  measure_memory_bound(report, sizes);
  measure_products(report, sizes);
  measure_images(report);
}
