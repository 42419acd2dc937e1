#include <omp.h>

#include <nlohmann/json.hpp>

#include "measurement/command_line.hpp"
#include "ops/measure.hpp"

namespace {

nlohmann::ordered_json figures_of(const Report& report) {
  nlohmann::ordered_json figures{{"copy_bytes_per_second", report.ceilings().copy}, {"fma_per_second", report.ceilings().fma}};
  for (const Figure& figure : report.figures()) {
    figures["operations"][figure.name] = {
        {"seconds", figure.seconds}, {"share", figure.share}, {"of", figure.copies ? "copy" : "fma"}};
  }
  for (const Ratio& ratio : report.ratios()) figures["ratios"][ratio.name] = ratio.times;
  return figures;
}

}  // namespace

// Time and rate of every operation at the sizes of one GPT and one ResNet, beside the ceilings of this machine's memory and
// arithmetic.
int main(int argc, char** argv) {
  CommandLine command("Measures the operations of a GPT step and of a ResNet step");
  ReportOptions options;
  int threads = 1;
  std::string json;
  command.option("--filter", options.filter, "only operations whose name contains this");
  command.option("--seconds", options.least_seconds, "of measuring each operation, at least");
  command.option("--calls", options.least_calls, "of each operation, at least");
  command.option("--threads", threads, "OpenMP threads; the ceilings are those of one");
  command.option("--json", json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  omp_set_num_threads(threads);
  Report report(measure_ceilings(), options);
  const GptSizes sizes;
  measure_memory_bound(report, sizes);
  measure_movements(report);
  measure_products(report, sizes);
  measure_images(report);
  write_json(json, figures_of(report));
}
