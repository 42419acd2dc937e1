#include "ops/matmul/cublaslt.hpp"

#include <fmt/format.h>

#include <string>

#include "device/cuda/library.hpp"
#include "trireme/core/error.hpp"

namespace trireme::ops::cuda {

CublasLt::CublasLt() {
  const device::Library library("cuBLASLt", {fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR)});
  library.find("cublasLtGetVersion", version);
  library.find("cublasLtGetStatusString", status_string);
  library.find("cublasLtCreate", create);
  library.find("cublasLtDestroy", destroy);
  library.find("cublasLtMatmulDescCreate", operation_create);
  library.find("cublasLtMatmulDescDestroy", operation_destroy);
  library.find("cublasLtMatmulDescSetAttribute", operation_set);
  library.find("cublasLtMatrixLayoutCreate", layout_create);
  library.find("cublasLtMatrixLayoutDestroy", layout_destroy);
  library.find("cublasLtMatrixLayoutSetAttribute", layout_set);
  library.find("cublasLtMatmulPreferenceCreate", preference_create);
  library.find("cublasLtMatmulPreferenceDestroy", preference_destroy);
  library.find("cublasLtMatmulPreferenceSetAttribute", preference_set);
  library.find("cublasLtMatmulAlgoGetHeuristic", heuristic);
  library.find("cublasLtMatmulAlgoCheck", check_algorithm);
  library.find("cublasLtMatmul", matmul);
}

const CublasLt& cublaslt() {
  static const CublasLt functions;
  return functions;
}

void check_cublas(cublasStatus_t status, std::string_view call, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error({.code = status == CUBLAS_STATUS_ALLOC_FAILED    ? ErrorCode::out_of_memory
                       : status == CUBLAS_STATUS_NOT_SUPPORTED ? ErrorCode::not_available
                                                               : ErrorCode::internal,
               .message = cublaslt().status_string(status),
               .operation = std::string(call),
               .name = std::string(what),
               .hint = "CUBLASLT_LOG_LEVEL=5 shows what the library was asked for"});
}

}  // namespace trireme::ops::cuda
