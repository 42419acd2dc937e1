#include <cerrno>
#include <memory>
#include <utility>

#include "files/remote/http_client.hpp"
#include "files/remote/read_only.hpp"
#include "files/remote/remote_input.hpp"
#include "trireme/core/error.hpp"

namespace trireme {
namespace remote {
namespace {

class HttpFileSystem final : public ReadOnly {
 public:
  explicit HttpFileSystem(const RemoteOptions& options) : client_(std::make_shared<HttpClient>(options)) {}

  std::unique_ptr<InputFile> open(const Location& location) const override {
    return open_remote(client_, location, file_at(location));
  }

  // A server tells files alone, and not what lies in a folder.
  FileKind kind_of(const Location& location) const override {
    if (location.after_scheme().ends_with('/')) return FileKind::none;
    return is_remote_file(*client_, location, file_at(location)) ? FileKind::file : FileKind::none;
  }
  std::vector<FolderEntry> entries_of(const Location& folder) const override {
    throw Error({.code = ErrorCode::io,
                 .message = "a web server does not list its folders",
                 .path = folder.string(),
                 .error_number = ENOTSUP,
                 .hint = "name the files: one by one, as name-{000..123}.tar, or in a file of names"});
  }

 private:
  static RemoteFile file_at(const Location& location) {
    return {.request = [url = url_of(location.string())](const std::string& method, std::vector<std::string> headers) {
      return HttpRequest{.method = method, .url = url, .headers = std::move(headers), .follows_redirects = true};
    }};
  }

  std::shared_ptr<const HttpClient> client_;
};

}  // namespace
}  // namespace remote

std::shared_ptr<FileSystem> http_file_system(const RemoteOptions& options) {
  return std::make_shared<remote::HttpFileSystem>(options);
}

}  // namespace trireme
