#include <fmt/format.h>

#include "files/remote_schemes.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/remote/remote_file_systems.hpp"

namespace trireme {
namespace {

[[noreturn]] void refuse_remote(const std::string& path) {
  throw Error({.code = ErrorCode::not_available,
               .message = "this build has no locations over the network",
               .path = path,
               .hint = "copy the file to this machine, or install " TRIREME_REMOTE_LACKS " and build again"});
}

}  // namespace

std::shared_ptr<FileSystem> remote_file_system(const Location& location) { refuse_remote(location.string()); }
std::shared_ptr<FileSystem> http_file_system(const RemoteOptions&) { refuse_remote("http://"); }
std::shared_ptr<FileSystem> s3_file_system(const S3Options&) { refuse_remote("s3://"); }
std::shared_ptr<FileSystem> webhdfs_file_system(const RemoteOptions&) { refuse_remote("webhdfs://"); }

}  // namespace trireme
