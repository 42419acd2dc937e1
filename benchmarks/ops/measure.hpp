#pragma once

#include <string>
#include <utility>
#include <vector>

#include "measurement/measurement.hpp"

// The ceilings of this machine, measured in the same run.
struct Ceilings {
  double copy = 0;  // bytes read and written per second, beyond the caches
  double fma = 0;   // float operations per second
};
Ceilings measure_ceilings();

struct Figure {
  std::string name;  // of the operation
  double seconds = 0;
  double share = 0;     // of the ceiling
  bool copies = false;  // the ceiling is copy bandwidth, otherwise arithmetic
};

// The ratio of the times of two operations.
struct Ratio {
  std::string name;
  double times = 0;
};

struct ReportOptions {
  std::string filter = {};      // only operations whose name contains this
  double least_seconds = 0.15;  // to measure each operation
  int least_calls = 7;          // likewise; the result is the median
};

// Prints one line per operation, and keeps its figures.
class Report {
 public:
  Report(Ceilings ceilings, ReportOptions options);

  template <typename Run>
  void memory_bound(const std::string& name, double bytes, const Run& run) {
    if (wanted(name)) print(name, median_seconds(run), bytes, ceilings_.copy, "GB/s");
  }
  template <typename Run>
  void product(const std::string& name, double operations, const Run& run) {
    if (wanted(name)) print(name, median_seconds(run), operations, ceilings_.fma, "GFLOP/s");
  }

  // Both take turns, so that each pair sees the same machine; the result is the median of the pairs.
  template <typename Run, typename Other>
  void ratio(const std::string& name, const Run& run, const Other& other) {
    if (!wanted(name)) return;
    run();
    other();
    std::vector<double> ratios;
    double total = 0;
    while (total < options_.least_seconds || std::ssize(ratios) < options_.least_calls) {
      const double seconds = seconds_of(run);
      const double of_other = seconds_of(other);
      ratios.push_back(seconds / of_other);
      total += seconds + of_other;
    }
    print(name, median(std::move(ratios)));
  }

  const Ceilings& ceilings() const { return ceilings_; }
  const std::vector<Figure>& figures() const { return figures_; }
  const std::vector<Ratio>& ratios() const { return ratios_; }

 private:
  template <typename Run>
  double median_seconds(const Run& run) const {
    run();
    std::vector<double> seconds;
    for (double total = 0; total < options_.least_seconds || std::ssize(seconds) < options_.least_calls;
         total += seconds.back()) {
      seconds.push_back(seconds_of(run));
    }
    return median(std::move(seconds));
  }
  bool wanted(const std::string& name) const { return name.find(options_.filter) != std::string::npos; }
  void print(const std::string& name, double seconds, double amount, double ceiling, const char* unit);
  void print(const std::string& name, double times);

  Ceilings ceilings_;
  ReportOptions options_;
  std::vector<Figure> figures_;
  std::vector<Ratio> ratios_;
};

// The sizes of the GPT that these benchmarks use.
struct GptSizes {
  std::int64_t batch = 8;
  std::int64_t time = 256;
  std::int64_t width = 384;
  std::int64_t heads = 6;
  std::int64_t vocabulary = 256;
  std::int64_t parameters = 10'900'000;
  std::int64_t rows() const { return batch * time; }
};

void measure_memory_bound(Report& report, const GptSizes& sizes);
void measure_movements(Report& report);
void measure_products(Report& report, const GptSizes& sizes);
void measure_images(Report& report);
