#include "ops/matmul/matmul_plan_cuda.hpp"

#include <fmt/format.h>

#include <bit>
#include <span>

#include "trireme/core/error.hpp"

namespace trireme::ops::cuda {
namespace {

// alpha and beta are of the type that products are summed in.
template <typename Sum>
constexpr Sum zero = 0;
template <typename Sum>
constexpr Sum one = 1;

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::float8_e4m3: return CUDA_R_8F_E4M3;
    case DType::float8_e5m2: return CUDA_R_8F_E5M2;
    case DType::float16: return CUDA_R_16F;
    case DType::bfloat16: return CUDA_R_16BF;
    case DType::float32: return CUDA_R_32F;
    case DType::float64: return CUDA_R_64F;
    default: break;
  }
  throw Error(
      {.code = ErrorCode::invalid_argument, .message = fmt::format("matmul: {} has no matrix products", name_of(dtype))});
}

bool has_float8(const MatmulProblem& problem) {
  return problem.shape.operands == DType::float8_e4m3 || problem.shape.operands == DType::float8_e5m2;
}

DType type_of_b(const MatmulProblem& problem) { return has_float8(problem) ? DType::float8_e4m3 : problem.shape.operands; }

cudaDataType_t sum_type(DType operands) { return operands == DType::float64 ? CUDA_R_64F : CUDA_R_32F; }

cublasComputeType_t compute_type(const MatmulProblem& problem) {
  if (problem.shape.operands == DType::float64) return CUBLAS_COMPUTE_64F;
  return problem.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

cublasLtEpilogue_t epilogue(const MatmulProblem& problem) {
  const bool bias = problem.shape.bias;
  switch (problem.gelu) {
    case Gelu::none: return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    case Gelu::forward: return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case Gelu::backward: break;
  }
  require(!bias, "matmul: the backward pass of GELU takes no bias");
  return CUBLASLT_EPILOGUE_DGELU;
}

cublasOperation_t operation(bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; }

Owned<cublasLtMatmulDesc_t> make_operation(const MatmulProblem& problem) {
  cublasLtMatmulDesc_t made = nullptr;
  check_cublas(cublaslt().operation_create(&made, compute_type(problem), sum_type(problem.shape.operands)),
               "cublasLtMatmulDescCreate", problem);
  return {made, cublaslt().operation_destroy};
}

Owned<cublasLtMatrixLayout_t> make_layout(const MatmulProblem& problem, DType dtype, const ColumnMajorMatrix& matrix) {
  const CublasLt& library = cublaslt();
  cublasLtMatrixLayout_t made = nullptr;
  check_cublas(library.layout_create(&made, data_type(dtype), static_cast<std::uint64_t>(matrix.rows),
                                     static_cast<std::uint64_t>(matrix.columns), matrix.leading),
               "cublasLtMatrixLayoutCreate", problem);
  Owned<cublasLtMatrixLayout_t> layout(made, library.layout_destroy);
  if (problem.batch != 1) {
    const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
      check_cublas(library.layout_set(made, attribute, &value, sizeof(value)), "cublasLtMatrixLayoutSetAttribute", problem);
    };
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(problem.batch));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.stride);
  }
  return layout;
}

// The limits on memory for the search for algorithms.
Owned<cublasLtMatmulPreference_t> make_preference(const MatmulProblem& problem) {
  const CublasLt& library = cublaslt();
  cublasLtMatmulPreference_t made = nullptr;
  check_cublas(library.preference_create(&made), "cublasLtMatmulPreferenceCreate", problem);
  Owned<cublasLtMatmulPreference_t> preference(made, library.preference_destroy);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check_cublas(library.preference_set(made, attribute, &value, sizeof(value)), "cublasLtMatmulPreferenceSetAttribute",
                 problem);
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
  for (const auto alignment : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(alignment, problem.alignment);
  }
  // Parts of a split sum are kept in the type of sums, not in a half type, and added in a fixed order. In-place reduction adds
  // them in the order in which they are ready.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  return preference;
}

cublasLtMatmulAlgo_t native(const MatmulAlgorithm& algorithm) { return std::bit_cast<cublasLtMatmulAlgo_t>(algorithm); }

}  // namespace

void check_cublas(cublasStatus_t status, std::string_view call, const MatmulProblem& problem) {
  if (status != CUBLAS_STATUS_SUCCESS) check_cublas(status, call, describe(problem));
}

MatmulPlan::MatmulPlan(cublasLtHandle_t handle, const MatmulProblem& problem)
    : handle_(handle),
      problem_(problem),
      operation_(make_operation(problem)),
      first_(make_layout(problem, type_of_b(problem), column_major(problem).first)),
      second_(make_layout(problem, problem.shape.operands, column_major(problem).second)),
      result_(make_layout(problem, problem.shape.result, column_major(problem).result)) {
  const ColumnMajorProduct product = column_major(problem);
  set(CUBLASLT_MATMUL_DESC_TRANSA, static_cast<std::int32_t>(operation(product.transpose_first)));
  set(CUBLASLT_MATMUL_DESC_TRANSB, static_cast<std::int32_t>(operation(product.transpose_second)));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<std::uint32_t>(epilogue(problem)));
  if (problem.gelu != Gelu::none) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, product.result.leading);
  // Fewer bits in sums are enough for products of values and weights, not for those of gradients.
  if (problem.shape.operands == DType::float8_e4m3) set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
  // Only the alignment of these pointers matters for the search for algorithms.
  auto* aligned = reinterpret_cast<void*>(std::uintptr_t{problem.alignment});
  const auto* scale = static_cast<const float*>(aligned);
  set_pointers({.bias = aligned, .gelu_input = aligned, .scale_a = scale, .scale_b = scale});
}

template <typename Value>
void MatmulPlan::set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check_cublas(cublaslt().operation_set(operation_.get(), attribute, &value, sizeof(value)), "cublasLtMatmulDescSetAttribute",
               problem_);
}

void MatmulPlan::set_pointers(const MatmulOperands& operands) {
  if (problem_.shape.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  if (problem_.gelu != Gelu::none) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.gelu_input);
  if (!has_float8(problem_)) return;
  set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands.scale_b);  // the library's first operand is b
  set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands.scale_a);
}

std::vector<MatmulAlgorithm> MatmulPlan::candidates(int most) const {
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(most));
  int count = 0;
  const auto preference = make_preference(problem_);
  const cublasStatus_t status = cublaslt().heuristic(handle_, operation_.get(), first_.get(), second_.get(), result_.get(),
                                                     result_.get(), preference.get(), most, found.data(), &count);
  const bool none = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
  if (!none) check_cublas(status, "cublasLtMatmulAlgoGetHeuristic", problem_);
  std::vector<MatmulAlgorithm> algorithms;
  for (const auto& result : std::span(found).first(static_cast<std::size_t>(count))) {
    if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(std::bit_cast<MatmulAlgorithm>(result.algo));
  }
  if (!algorithms.empty()) return algorithms;
  throw Error({.code = ErrorCode::not_available,
               .message = "cuBLASLt has no algorithm for this matrix product on this GPU",
               .operation = "cublasLtMatmulAlgoGetHeuristic",
               .name = describe(problem_)});
}

bool MatmulPlan::accepts(const MatmulAlgorithm& algorithm) const {
  const cublasLtMatmulAlgo_t asked = native(algorithm);
  cublasLtMatmulHeuristicResult_t answer{};
  return cublaslt().check_algorithm(handle_, operation_.get(), first_.get(), second_.get(), result_.get(), result_.get(),
                                    &asked, &answer) == CUBLAS_STATUS_SUCCESS &&
         answer.workspaceSize <= workspace_bytes;
}

cublasStatus_t MatmulPlan::run(const MatmulAlgorithm& algorithm, const MatmulOperands& operands, void* workspace,
                               cudaStream_t stream) {
  set_pointers(operands);
  const auto choose = [&](const auto& in_float, const auto& in_double) -> const void* {
    return problem_.shape.operands == DType::float64 ? static_cast<const void*>(&in_double) : &in_float;
  };
  const void* alpha = choose(one<float>, one<double>);
  const void* beta = problem_.shape.accumulate ? alpha : choose(zero<float>, zero<double>);
  const cublasLtMatmulAlgo_t chosen = native(algorithm);
  return cublaslt().matmul(handle_, operation_.get(), alpha, operands.b, first_.get(), operands.a, second_.get(), beta,
                           operands.c, result_.get(), operands.c, result_.get(), &chosen, workspace, workspace_bytes, stream);
}

}  // namespace trireme::ops::cuda
