#include "files/remote/hdfs_status.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "files/remote/remote_input.hpp"
#include "trireme/core/error.hpp"

namespace trireme::remote {
namespace {

[[noreturn]] void refuse_hdfs_answer(const Location& location, const std::string& what) {
  throw Error({.code = ErrorCode::corrupt_file,
               .message = "the server's answer is none of WebHDFS: " + what,
               .path = location.string(),
               .hint = "look whether host and port are those of a namenode's web interface"});
}

std::int64_t whole_number_in(const nlohmann::json& object, const char* key, const Location& location) {
  const auto& value = object.at(key);
  if (!value.is_number_integer()) refuse_hdfs_answer(location, fmt::format("{} is no whole number: {}", key, value.dump()));
  return value.get<std::int64_t>();
}

HdfsStatus status_from(const nlohmann::json& object, const Location& location) {
  HdfsStatus status{.type = object.at("type"), .suffix = object.value("pathSuffix", "")};
  const auto& length = object.at("length");
  if (!length.is_number_unsigned()) refuse_hdfs_answer(location, "length is no number of bytes: " + length.dump());
  status.length = checked_size(length.get<std::uint64_t>(), location);
  status.modified = whole_number_in(object, "modificationTime", location);
  if (object.contains("fileId")) status.id = whole_number_in(object, "fileId", location);
  return status;
}

// The answer as JSON, of which `take` takes something.
template <typename Take>
auto parse_hdfs(std::string_view text, const Location& location, const Take& take) {
  try {
    return take(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    refuse_hdfs_answer(location, error.what());
  }
}

}  // namespace

HdfsStatus parse_hdfs_status(std::string_view json, const Location& location) {
  return parse_hdfs(json, location,
                    [&](const nlohmann::json& object) { return status_from(object.at("FileStatus"), location); });
}

std::vector<HdfsStatus> parse_hdfs_listing(std::string_view json, const Location& folder) {
  return parse_hdfs(json, folder, [&](const nlohmann::json& object) {
    std::vector<HdfsStatus> all;
    for (const auto& entry : object.at("FileStatuses").at("FileStatus")) all.push_back(status_from(entry, folder));
    return all;
  });
}

std::string parse_hdfs_refusal(std::string_view json) {
  const auto object = nlohmann::json::parse(json, nullptr, false);
  try {
    const auto& exception = object.at("RemoteException");
    return fmt::format("{}: {}", exception.at("exception").get<std::string>(), exception.at("message").get<std::string>());
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

}  // namespace trireme::remote
