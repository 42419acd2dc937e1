#include "ops/base/cudnn.hpp"

#include <fmt/format.h>

#include <array>

#include "device/cuda/stream.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"

namespace trireme::ops {
namespace {

// cuDNN compiles attention with NVRTC, and opens it by its name alone. If NVRTC is open already, cuDNN finds it in any folder.
void open_nvrtc() {
  try {
    const device::Library nvrtc("NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12"});
  } catch (const Error& error) {
    log(Severity::warning, "attention may run without cuDNN, which is slower: {}", error.what());
  }
}

}  // namespace

Cudnn::Cudnn() : library_("cuDNN", {"libcudnn.so.9"}) {
  library_.find("cudnnBackendCreateDescriptor", create_descriptor);
  library_.find("cudnnBackendDestroyDescriptor", destroy_descriptor);
  library_.find("cudnnBackendSetAttribute", set_attribute);
  library_.find("cudnnBackendGetAttribute", get_attribute);
  library_.find("cudnnBackendFinalize", finalize);
  library_.find("cudnnBackendExecute", execute);
  library_.find("cudnnGetErrorString", error_string_);
  library_.find("cudnnGetLastErrorString", last_error_string_);
  library_.find("cudnnCreate", create_);
  library_.find("cudnnDestroy", destroy_);
  library_.find("cudnnSetStream", set_stream_);
  decltype(&cudnnGetVersion) version = nullptr;
  library_.find("cudnnGetVersion", version);
  open_nvrtc();
  // The oldest version whose plans are tested. Before 9.16 a number of keys that is no multiple of 128 needs masks of padding.
  constexpr std::size_t oldest = 91900;
  if (version() < oldest) {
    throw Error({.code = ErrorCode::not_available,
                 .message = "this cuDNN is too old",
                 .wanted = "9.19 or later",
                 .had = fmt::format("{}.{}", version() / 10000, version() / 100 % 100),
                 .hint = "install a newer version"});
  }
}

Cudnn::~Cudnn() {
  if (handle_ != nullptr) destroy_(handle_);
}

cudnnHandle_t Cudnn::handle() {
  const cudaStream_t stream = device::native_stream();
  if (handle_ == nullptr) check(create_(&handle_), "cudnnCreate");
  check(set_stream_(handle_, stream), "cudnnSetStream");
  return handle_;
}

void Cudnn::check(cudnnStatus_t status, std::string_view call) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 1024> reason{};
  last_error_string_(reason.data(), reason.size());
  const bool unsupported = CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED;
  throw Error({.code = unsupported ? ErrorCode::not_available : ErrorCode::internal,
               .message = fmt::format("cuDNN: {}", error_string_(status)),
               .operation = std::string(call),
               .had = reason.data()});
}

Cudnn& cudnn() {
  thread_local Cudnn library;
  return library;
}

CudnnDescriptor::CudnnDescriptor(const Cudnn& library, cudnnBackendDescriptorType_t type) : library_(&library) {
  library.check(library.create_descriptor(type, &descriptor_), "cudnnBackendCreateDescriptor");
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) library_->destroy_descriptor(descriptor_);
}

CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::size_t count,
                                      const void* values) {
  library_->check(library_->set_attribute(descriptor_, name, type, static_cast<std::int64_t>(count), values),
                  "cudnnBackendSetAttribute");
  return *this;
}

CudnnDescriptor& CudnnDescriptor::finalize() {
  library_->check(library_->finalize(descriptor_), "cudnnBackendFinalize");
  return *this;
}

}  // namespace trireme::ops
