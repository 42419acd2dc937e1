#include "time_to_quality/mllog.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

void Mllog::event(const std::string& key, const nlohmann::ordered_json& value, const Place& place) const {
  print("POINT_IN_TIME", key, value, nlohmann::ordered_json::object(), place);
}

void Mllog::event(const std::string& key, const nlohmann::ordered_json& value, const nlohmann::ordered_json& metadata,
                  const Place& place) const {
  print("POINT_IN_TIME", key, value, metadata, place);
}

void Mllog::start(const std::string& key, const nlohmann::ordered_json& metadata, const Place& place) const {
  print("INTERVAL_START", key, nullptr, metadata, place);
}

void Mllog::end(const std::string& key, const nlohmann::ordered_json& metadata, const Place& place) const {
  print("INTERVAL_END", key, nullptr, metadata, place);
}

void Mllog::print(const char* type, const std::string& key, const nlohmann::ordered_json& value,
                  const nlohmann::ordered_json& metadata, const Place& place) const {
  if (!prints_) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  nlohmann::ordered_json line{
      {"namespace", ""},    {"time_ms", std::chrono::duration_cast<std::chrono::milliseconds>(now).count()},
      {"event_type", type}, {"key", key},
      {"value", value},     {"metadata", metadata}};
  line["metadata"]["file"] = std::filesystem::path(place.file_name()).filename().string();
  line["metadata"]["lineno"] = place.line();
  fmt::print(":::MLLOG {}\n", line.dump());
  std::fflush(stdout);
}
