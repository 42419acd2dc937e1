#pragma once

#include <cerrno>
#include <memory>

#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::remote {

// A file system that nothing is written to.
class ReadOnly : public FileSystem {
 public:
  std::unique_ptr<OutputFile> create(const Location& location) override { refuse(location); }
  void create_folder(const Location& location) override { refuse(location); }
  void rename(const Location& from, const Location&) override { refuse(from); }
  void sync_folder(const Location& location) override { refuse(location); }
  void remove_all(const Location& location) override { refuse(location); }

 private:
  [[noreturn]] static void refuse(const Location& location) {
    throw Error({.code = ErrorCode::io,
                 .message = "locations of this scheme are read, not written",
                 .path = location.string(),
                 .error_number = EROFS,
                 .hint = "write to a path of this machine or to s3://"});
  }
};

}  // namespace trireme::remote
