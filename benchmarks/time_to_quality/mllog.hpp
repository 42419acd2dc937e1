#pragma once

#include <nlohmann/json_fwd.hpp>
#include <source_location>
#include <string>

#include "trireme/comm/base/group.hpp"

// MLPerf's log of a training: one line for each event, which PyPI's mlperf-logging reads:
//   :::MLLOG {"namespace": "", "time_ms": 1790000000000, "event_type": "POINT_IN_TIME", "key": "seed", "value": 1, ...}
// Only rank 0 prints.
class Mllog {
 public:
  explicit Mllog(const trireme::Group& world) : prints_(world.rank() == 0) {}

  using Place = std::source_location;
  void event(const std::string& key, const nlohmann::ordered_json& value, const Place& place = Place::current()) const;
  void event(const std::string& key, const nlohmann::ordered_json& value, const nlohmann::ordered_json& metadata,
             const Place& place = Place::current()) const;
  void start(const std::string& key, const nlohmann::ordered_json& metadata, const Place& place = Place::current()) const;
  void end(const std::string& key, const nlohmann::ordered_json& metadata, const Place& place = Place::current()) const;

 private:
  void print(const char* type, const std::string& key, const nlohmann::ordered_json& value,
             const nlohmann::ordered_json& metadata, const Place& place) const;

  bool prints_;
};
