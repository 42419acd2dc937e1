#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trireme/files/file_system.hpp"

namespace trireme::checkpoint {

inline constexpr const char* writer_sign_name = "writer.json";

// A sign of life of the job that saves into a directory: the content of its writer.json.
struct WriterSign {
  std::string job;
  std::string host;
  std::string machine;       // machine and PID namespace; empty if unknown
  std::int64_t process = 0;  // of rank 0
  std::string started;       // start time in clock ticks, since a later process may get the same id
  std::string time;          // of this sign, in UTC
  std::int64_t number = 0;   // number of earlier signs

  bool operator==(const WriterSign&) const = default;
};

// The first sign of this process, with its job id.
WriterSign own_sign();
WriterSign next_sign(WriterSign sign);  // the next sign of the same job

// std::nullopt if there is no sign, or only what a crash left of one.
std::optional<WriterSign> read_sign(const FileSystem& files, const Location& directory);

// create_sign() needs that the file does not exist; replace_sign() replaces it.
void create_sign(FileSystem& files, const Location& directory, const WriterSign& sign);
void replace_sign(FileSystem& files, const Location& directory, const WriterSign& sign);
void remove_sign(FileSystem& files, const Location& directory);
bool has_sign(const FileSystem& files, const Location& directory);

enum class Life : std::uint8_t { ended, goes_on, unknown };
Life life_of(const WriterSign& sign);  // unknown for another machine

}  // namespace trireme::checkpoint
