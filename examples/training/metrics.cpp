#include "training/metrics.hpp"

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/core/file.hpp"

namespace {

[[noreturn]] void refuse_metrics(const std::string& path, const char* what) {
  throw trireme::Error({.code = trireme::ErrorCode::io, .message = what, .path = path, .error_number = errno});
}

// A run that goes on repeats the steps after its checkpoint: their lines go.
void keep_lines_before(std::int64_t step, const std::string& path) {
  std::ifstream before(path);
  if (!before) return;
  std::string kept;
  for (std::string line; std::getline(before, line);) {
    const auto object = nlohmann::json::parse(line, nullptr, false);
    if (object.is_object() && object.value("step", step) < step) kept += line + "\n";
  }
  trireme::FileReplacement file(path);
  file.write(std::as_bytes(std::span(kept)));
  file.commit();
}

}  // namespace

MetricsFile::MetricsFile(const std::string& path, std::string unit, std::int64_t first_step)
    : path_(path), unit_(std::move(unit)) {
  if (path.empty()) return;
  if (first_step > 0) keep_lines_before(first_step, path);
  file_.reset(std::fopen(path.c_str(), first_step > 0 ? "a" : "w"));
  if (!file_) refuse_metrics(path, "the metrics file can't be opened");
}

void MetricsFile::write(const StepMetrics& metrics) {
  std::vector<Metric> line{{"step", metrics.step},
                           {"loss", metrics.loss},
                           {"learning_rate", metrics.learning_rate},
                           {"gradient_norm", metrics.gradient_norm},
                           {unit_ + "_per_second", metrics.samples_per_second},
                           {"seconds", metrics.seconds},
                           {"compute_seconds", metrics.compute_seconds},
                           {"exposed_communication_seconds", metrics.exposed_communication_seconds},
                           {"bytes_sent", static_cast<std::int64_t>(metrics.bytes_sent)}};
  if (metrics.validation_loss) line.emplace_back("validation_loss", *metrics.validation_loss);
  if (metrics.validation_accuracy) line.emplace_back("validation_accuracy", *metrics.validation_accuracy);
  if (metrics.loss_scale) {
    line.emplace_back("loss_scale", *metrics.loss_scale);
    line.emplace_back("skipped_steps", metrics.skipped_steps);
  }
  write(line);
}

void MetricsFile::write(std::span<const Metric> line) {
  if (!file_) return;
  nlohmann::ordered_json object;
  for (const auto& [name, value] : line) std::visit([&](auto number) { object[name] = number; }, value);
  const std::string text = object.dump() + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() || std::fflush(file_.get()) != 0) {
    refuse_metrics(path_, "the metrics file can't be written");
  }
}
