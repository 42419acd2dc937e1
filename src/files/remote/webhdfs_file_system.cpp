#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "files/remote/hdfs_status.hpp"
#include "files/remote/http_client.hpp"
#include "files/remote/patience.hpp"
#include "files/remote/read_ahead.hpp"
#include "files/remote/read_only.hpp"
#include "files/remote/remote_input.hpp"
#include "files/remote/s3_credentials.hpp"
#include "trireme/core/error.hpp"

namespace trireme {
namespace remote {
namespace {

FileKind kind_of_type(const std::string& type) {
  if (type.empty()) return FileKind::none;
  return type == "FILE" ? FileKind::file : type == "DIRECTORY" ? FileKind::folder : FileKind::other;
}

class WebHdfs {
 public:
  explicit WebHdfs(const RemoteOptions& options) : client_(options) {}

  const HttpClient& client() const { return client_; }

  HttpRequest request(const Location& location, const std::string& operation) const {
    std::string_view text = location.after_scheme();
    if (text.starts_with("//")) text.remove_prefix(2);
    const std::size_t slash = std::min(text.find('/'), text.size());
    if (slash == 0) {
      throw Error({.code = ErrorCode::invalid_argument,
                   .message = "it names no host",
                   .path = location.string(),
                   .hint = "a location there is webhdfs://host:port/name"});
    }
    std::string url = fmt::format("http://{}/webhdfs/v1{}?op={}", url_of(text.substr(0, slash)),
                                  s3_encoded(text.substr(slash), true), operation);
    if (slash == text.size()) url.insert(url.find('?'), "/");
    if (const std::string user = environment("HADOOP_USER_NAME"); !user.empty()) url += "&user.name=" + s3_encoded(user, false);
    return {.method = "GET", .url = url, .headers = {}, .body = {}, .follows_redirects = true};
  }

  // Status 404 is an answer too.
  HttpAnswer ask(const Location& location, const std::string& doing, const std::string& operation) const {
    HttpAnswer answer = send(client_, location, doing, [&] { return request(location, operation); });
    if (answer.head.status != 200 && answer.head.status != 404) {
      refuse_status(location, doing, answer.head.status, parse_hdfs_refusal(answer.text));
    }
    return answer;
  }

  HdfsStatus status(const Location& location) const {
    const HttpAnswer answer = ask(location, "it cannot be looked for", "GETFILESTATUS");
    if (answer.head.status == 404) return {};
    return parse_hdfs_status(answer.text, location);
  }

 private:
  HttpClient client_;
};

class HdfsInput final : public InputFile {
 public:
  HdfsInput(std::shared_ptr<const WebHdfs> server, Location location)
      : server_(std::move(server)), location_(std::move(location)), seen_(server_->status(location_)) {
    if (seen_.type == "FILE") return;
    throw Error({.code = ErrorCode::io,
                 .message = "the file cannot be opened",
                 .path = location_.string(),
                 .error_number = seen_.type.empty() ? ENOENT : EISDIR});
  }

  std::uint64_t size() const override { return seen_.length; }
  std::string version() const override { return fmt::format("file {} of {}", seen_.id, seen_.modified); }

  // HDFS knows no condition for a read, so it is asked afterwards.
  void read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    const RangeSource source{.request =
                                 [this](std::uint64_t begin, std::uint64_t end) {
                                   return server_->request(location_,
                                                           fmt::format("OPEN&offset={}&length={}", begin, end - begin));
                                 },
                             .first_byte =
                                 [this](const HttpAnswer& answer, std::uint64_t begin) {
                                   check_passing(answer);
                                   if (answer.head.status == 200) return begin;
                                   refuse_status(location_, fmt::format("byte {} cannot be read", begin), answer.head.status,
                                                 parse_hdfs_refusal(answer.text));
                                 }};
    read_range(server_->client(), location_, source, into, offset);
    if (server_->status(location_).is_same(seen_)) return;
    throw Error({.code = ErrorCode::io,
                 .message = "the file has changed since it was opened",
                 .path = location_.string(),
                 .error_number = EBUSY,
                 .hint = "start again, and write changed data under another name"});
  }

 private:
  std::shared_ptr<const WebHdfs> server_;
  Location location_;
  HdfsStatus seen_;
};

class WebHdfsFileSystem final : public ReadOnly {
 public:
  explicit WebHdfsFileSystem(const RemoteOptions& options) : server_(std::make_shared<WebHdfs>(options)) {}

  std::unique_ptr<InputFile> open(const Location& location) const override {
    return with_read_ahead(std::make_unique<HdfsInput>(server_, location), location);
  }
  FileKind kind_of(const Location& location) const override { return kind_of_type(server_->status(location).type); }

  std::vector<FolderEntry> entries_of(const Location& folder) const override {
    const std::string doing = "the folder cannot be read";
    const HttpAnswer answer = server_->ask(folder, doing, "LISTSTATUS");
    if (answer.head.status == 404) refuse_status(folder, doing, 404, parse_hdfs_refusal(answer.text));
    std::vector<FolderEntry> entries;
    for (const HdfsStatus& status : parse_hdfs_listing(answer.text, folder)) {
      if (status.suffix.empty()) continue;
      entries.push_back({.name = checked_name(status.suffix, folder), .kind = kind_of_type(status.type)});
    }
    std::ranges::sort(entries, {}, &FolderEntry::name);
    return entries;
  }

 private:
  std::shared_ptr<const WebHdfs> server_;
};

}  // namespace
}  // namespace remote

std::shared_ptr<FileSystem> webhdfs_file_system(const RemoteOptions& options) {
  return std::make_shared<remote::WebHdfsFileSystem>(options);
}

}  // namespace trireme
