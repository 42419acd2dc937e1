#include "device/cuda/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::device {
namespace {

// Opens a library in one of the folders where CMake found it, TRIREME_CUDA_LIBRARY_FOLDERS.
void* open_in_known_folders(const std::string& file) {
  std::string_view folders = TRIREME_CUDA_LIBRARY_FOLDERS;
  while (!folders.empty()) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    const std::string path = fmt::format("{}/{}", folders.substr(0, end), file);
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  return nullptr;
}

}  // namespace

Library::Library(std::string product, std::initializer_list<std::string> files) : product_(std::move(product)) {
  std::string tried;
  for (const std::string& file : files) {
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) handle_ = open_in_known_folders(file);
    if (handle_ != nullptr) return;
    tried += (tried.empty() ? "" : ", ") + file;
  }
  throw Error({.code = ErrorCode::not_available,
               .message = fmt::format("{} was not found", product_),
               .name = tried,
               .hint = "install it, or name its folder in LD_LIBRARY_PATH"});
}

void* Library::address(const char* name) const {
  void* found = dlsym(handle_, name);
  if (found == nullptr) {
    throw Error({.code = ErrorCode::not_available,
                 .message = fmt::format("this {} has no function {}", product_, name),
                 .hint = "install a newer version"});
  }
  return found;
}

}  // namespace trireme::device
