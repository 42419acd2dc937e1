#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trireme/files/file_system.hpp"

namespace trireme::checkpoint {

inline constexpr const char* writer_sign_name = "writer.json";

// A sign of life of the job that saves into a directory: what writer.json there holds.
struct WriterSign {
  std::string job;
  std::string host;
  std::string machine;       // and its space of process numbers; empty: not known
  std::int64_t process = 0;  // of rank 0
  std::string started;       // when, in the machine's own count: a later process may have the same number
  std::string time;          // of this sign, in UTC
  std::int64_t number = 0;   // of signs before it

  bool operator==(const WriterSign&) const = default;
};

// Of this process, with an id that all of it shares.
WriterSign own_sign();
WriterSign next_sign(WriterSign sign);  // of the same job, now

// Nothing where there is none, or what a crash has left of one.
std::optional<WriterSign> read_sign(const FileSystem& files, const Location& directory);

// Creates the file, which must not exist; replaces it.
void create_sign(FileSystem& files, const Location& directory, const WriterSign& sign);
void replace_sign(FileSystem& files, const Location& directory, const WriterSign& sign);
void remove_sign(FileSystem& files, const Location& directory);
bool has_sign(const FileSystem& files, const Location& directory);

enum class Life : std::uint8_t { ended, goes_on, unknown };
Life life_of(const WriterSign& sign);  // unknown: of another machine

}  // namespace trireme::checkpoint
