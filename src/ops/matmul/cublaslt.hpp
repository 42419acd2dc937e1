#pragma once

#include <cublasLt.h>

#include <memory>
#include <string_view>
#include <type_traits>

namespace trireme::ops::cuda {

// The functions of cuBLASLt that are used here.
struct CublasLt {
  CublasLt();  // throws Error{not_available} if the library or one of its functions is missing

  decltype(cublasLtGetVersion)* version;
  decltype(cublasLtGetStatusString)* status_string;
  decltype(cublasLtCreate)* create;
  decltype(cublasLtDestroy)* destroy;
  decltype(cublasLtMatmulDescCreate)* operation_create;
  decltype(cublasLtMatmulDescDestroy)* operation_destroy;
  decltype(cublasLtMatmulDescSetAttribute)* operation_set;
  decltype(cublasLtMatrixLayoutCreate)* layout_create;
  decltype(cublasLtMatrixLayoutDestroy)* layout_destroy;
  decltype(cublasLtMatrixLayoutSetAttribute)* layout_set;
  decltype(cublasLtMatmulPreferenceCreate)* preference_create;
  decltype(cublasLtMatmulPreferenceDestroy)* preference_destroy;
  decltype(cublasLtMatmulPreferenceSetAttribute)* preference_set;
  decltype(cublasLtMatmulAlgoGetHeuristic)* heuristic;
  decltype(cublasLtMatmulAlgoCheck)* check_algorithm;
  decltype(cublasLtMatmul)* matmul;
};

// The library is opened by the first call of the process.
const CublasLt& cublaslt();

// Throws unless `status` is CUBLAS_STATUS_SUCCESS; `what` names the product in the message.
void check_cublas(cublasStatus_t status, std::string_view call, std::string_view what = {});

// A handle or descriptor, destroyed with its owner. Errors of the destruction are ignored.
template <typename Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, cublasStatus_t (*)(Handle)>;

}  // namespace trireme::ops::cuda
