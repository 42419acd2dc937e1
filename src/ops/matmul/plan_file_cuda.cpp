#include "ops/matmul/plan_file_cuda.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::ops::cuda {
namespace {

constexpr int format = 1;

// A file name for a platform: "NVIDIA H200" becomes "nvidia-h200".
std::string file_name(const PlanPlatform& platform) {
  std::string gpu;
  for (const char letter : platform.gpu) {
    const auto code = static_cast<unsigned char>(letter);
    gpu += std::isalnum(code) != 0 ? static_cast<char>(std::tolower(code)) : '-';
  }
  return fmt::format("matmul-{}-cublaslt-{}.json", gpu, platform.cublaslt);
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::error_code failure;  // ignored: the error of writing the file says more
  std::filesystem::create_directories(path.parent_path(), failure);
  FileReplacement file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace

std::string to_json(const PlanPlatform& platform, const TimedPlans& plans) {
  nlohmann::ordered_json json = {
      {"format", format}, {"gpu", platform.gpu}, {"cublaslt", platform.cublaslt}, {"plans", nlohmann::ordered_json::object()}};
  for (const auto& [problem, timed] : plans) {
    json["plans"][problem] = {{"algorithm", timed.algorithm}, {"seconds", timed.seconds}};
  }
  return json.dump(1) + "\n";
}

TimedPlans from_json(std::string_view text, const PlanPlatform& platform) {
  PlanPlatform made_for;
  TimedPlans plans;
  try {
    const auto json = nlohmann::json::parse(text);
    require(json.at("format").get<int>() == format, "its format is {}, this library reads {}", json.at("format").get<int>(),
            format);
    json.at("gpu").get_to(made_for.gpu);
    json.at("cublaslt").get_to(made_for.cublaslt);
    for (const auto& [problem, timed] : json.at("plans").items()) {
      plans[problem] = {timed.at("algorithm").get<MatmulAlgorithm>(), timed.at("seconds").get<double>()};
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error({.code = ErrorCode::corrupt_file, .message = fmt::format("it holds no timed plans: {}", error.what())});
  }
  require(made_for == platform, "it was made for {} with cuBLASLt {}, here are {} and {}", made_for.gpu, made_for.cublaslt,
          platform.gpu, platform.cublaslt);
  return plans;
}

std::filesystem::path plan_folder(const char* cache, const char* home) {
  if (cache != nullptr) return cache;
  if (home == nullptr || *home == '\0') return {};
  return std::filesystem::path(home) / ".cache" / "trireme";
}

PlanFile::PlanFile(const std::filesystem::path& folder, PlanPlatform platform) : platform_(std::move(platform)) {
  if (folder.empty()) return;
  path_ = folder / file_name(platform_);
  try {
    if (std::filesystem::exists(path_)) plans_ = from_json(open_file(path_)->content(), platform_);
  } catch (const std::exception& error) {
    log(Severity::warning, "{} is not used, matrix products are timed again: {}", path_.string(), error.what());
  }
}

const TimedAlgorithm* PlanFile::find(std::string_view problem) const {
  const auto found = plans_.find(problem);
  return found == plans_.end() ? nullptr : &found->second;
}

void PlanFile::add(const std::string& problem, const TimedAlgorithm& timed) {
  plans_[problem] = timed;
  if (path_.empty()) return;
  TimedPlans all = plans_;
  try {
    all.merge(from_json(open_file(path_)->content(), platform_));
  } catch (const Error&) {  // there is no file yet, or it can't be used
  }
  try {
    write_text(path_, to_json(platform_, all));
  } catch (const Error& error) {
    log(Severity::warning, "the times of matrix products are not kept: {}", error.what());
    path_.clear();
  }
}

}  // namespace trireme::ops::cuda
