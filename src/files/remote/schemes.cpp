#include "files/remote_schemes.hpp"
#include "trireme/files/remote/remote_file_systems.hpp"

namespace trireme {

std::shared_ptr<FileSystem> remote_file_system(const Location& location) {
  if (location.scheme() == "s3") return s3_file_system();
  if (location.scheme() == "webhdfs") return webhdfs_file_system();
  return http_file_system();
}

}  // namespace trireme
