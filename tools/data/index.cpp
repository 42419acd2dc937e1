#include <fmt/format.h>

#include <array>
#include <string_view>
#include <vector>

#include "commands.hpp"
#include "trireme/data/shards/json_lines.hpp"
#include "trireme/data/shards/tar_shards.hpp"
#include "trireme/data/sources/locations_of.hpp"

namespace trireme::data_program {

int index(const std::vector<std::string>& patterns) {
  static constexpr std::array<std::string_view, 4> endings{".tar", ".jsonl", ".json", ".ndjson"};
  std::vector<Location> archives, lines;
  for (const std::string& pattern : patterns) {
    for (const Location& file : data::locations_of(pattern, endings)) {
      (file.extension() == ".tar" ? archives : lines).push_back(file);
    }
  }
  if (!archives.empty()) {
    const data::TarShards shards(archives);
    shards.write_index();
    fmt::print("{} archives of {} samples\n", archives.size(), shards.size());
  }
  if (!lines.empty()) {
    const data::JsonLines all(lines);
    all.write_index();
    fmt::print("{} files of {} lines\n", lines.size(), all.size());
  }
  return 0;
}

}  // namespace trireme::data_program
