#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/files/location.hpp"

namespace trireme::remote {

// Of a file or folder, in the words of HDFS.
struct HdfsStatus {
  std::string type = {};  // "FILE", "DIRECTORY"; empty: there is nothing
  std::string suffix = {};
  std::uint64_t length = 0;
  std::int64_t modified = 0;
  std::int64_t id = 0;

  bool is_same(const HdfsStatus& other) const { return length == other.length && modified == other.modified && id == other.id; }
};

// What WebHDFS answers. Where it breaks the form it is an Error{corrupt_file} with the location.
HdfsStatus parse_hdfs_status(std::string_view json, const Location& location);
std::vector<HdfsStatus> parse_hdfs_listing(std::string_view json, const Location& folder);

// What a refusal says; empty: it is none.
std::string parse_hdfs_refusal(std::string_view json);

}  // namespace trireme::remote
