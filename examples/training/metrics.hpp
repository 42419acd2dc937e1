#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

// What one step showed.
struct StepMetrics {
  std::int64_t step = 0;
  double loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;
  double samples_per_second = 0;  // in the unit of the file
  double seconds = 0;
  double compute_seconds = 0;
  double exposed_communication_seconds = 0;
  std::uint64_t bytes_sent = 0;
  std::optional<double> validation_loss = {};
  std::optional<double> validation_accuracy = {};
  std::optional<double> loss_scale = {};  // of the next step, in fp16
  std::int64_t skipped_steps = 0;         // so far
};

// A named value of a line.
using Metric = std::pair<std::string, std::variant<std::int64_t, double>>;

// A file with one JSON object a line. A failed write is an error that names the file: no line is lost unnoticed.
class MetricsFile {
 public:
  // An empty path writes nothing. `unit`: what is counted a second, "tokens". Of a file that is there the lines of steps before
  // `first_step` stay, where that is above 0.
  MetricsFile(const std::string& path, std::string unit, std::int64_t first_step = 0);

  void write(const StepMetrics& metrics);
  void write(std::span<const Metric> line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::string unit_;
  std::unique_ptr<std::FILE, Close> file_;
};
