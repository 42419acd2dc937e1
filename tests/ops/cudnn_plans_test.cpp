#include "catch.hpp"
#include "ops/attention/attention_choice.hpp"
#include "ops/attention/attention_graph_cuda.hpp"
#include "ops/convolution/convolution_graph_cuda.hpp"
#include "trireme/core/error.hpp"

// The graphs of attention and convolutions that cuDNN accepts, by plans for an H200 that is described here. This needs no GPU
// and runs no plan: cuda_attention_test.cpp and cuda_convolution_test.cpp compare numbers.
using namespace trireme;
using namespace trireme::ops;

namespace {

const char* const h200 = R"({"deviceName": "NVIDIA H200", "cudaDeviceId": 0, "pciDeviceId": 0, "deviceVer": 900,
  "driverVer": 13000, "multiProcessorCount": 132, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000,
  "totalGlobalMem": 150754820096, "l2CacheSize": 62914560, "warpSize": 32, "isTccDriver": 0, "supportCoopLaunch": 1,
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "maxThreadsPerBlock": 1024,
  "maxThreadsPerSM": 2048, "maxCtasPerSM": 32, "regsPerBlock": 65536, "maxRegistersPerSM": 65536,
  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024})";

AttentionGraph packed(cudnnDataType_t type, std::int64_t batch, std::int64_t time, std::int64_t heads, std::int64_t kv_heads,
                      std::int64_t size, bool causal) {
  const std::int64_t row = (heads + 2 * kv_heads) * size;
  return {.type = type,
          .sizes = {.batch = batch,
                    .queries = time,
                    .keys = time,
                    .key_rows = time,
                    .heads = heads,
                    .kv_heads = kv_heads,
                    .size = size,
                    .value_size = size,
                    .q_stride = row,
                    .kv_stride = row,
                    .packed = true},
          .causal = causal};
}

AttentionGraph separate(std::int64_t queries, std::int64_t keys, std::int64_t heads, std::int64_t kv_heads, std::int64_t size,
                        bool causal) {
  AttentionGraph graph = packed(CUDNN_DATA_BFLOAT16, 2, queries, heads, kv_heads, size, causal);
  graph.sizes.keys = graph.sizes.key_rows = keys;
  graph.sizes.q_stride = heads * size;
  graph.sizes.kv_stride = 2 * kv_heads * size;
  graph.sizes.packed = false;
  return graph;
}

void require_plans(const AttentionGraph& graph) {
  const AttentionSizes& sizes = graph.sizes;
  CAPTURE(sizes.batch, sizes.queries, sizes.keys, sizes.heads, sizes.kv_heads, sizes.size, sizes.packed, graph.causal);
  CHECK(choose_attention_kernel({.dtype = graph.type == CUDNN_DATA_HALF ? DType::float16 : DType::bfloat16,
                                 .sizes = sizes,
                                 .causal = graph.causal,
                                 .key_padding_mask = false,
                                 .first_keys = false,
                                 .aligned = true})
            .kernel == AttentionKernel::cudnn);
  // A plan may hold some floats for each element of the rows, not the queries x keys matrix.
  const auto rows_bytes =
      static_cast<std::size_t>(sizes.batch * sizes.heads * (sizes.queries + 2 * sizes.keys) * sizes.size * 4);
  CHECK(plan_attention_forward(cudnn(), graph, {.description = h200}).workspace_bytes() < rows_bytes);
  CHECK(plan_attention_backward(cudnn(), graph, {.description = h200}).workspace_bytes() < rows_bytes);
}

}  // namespace

TEST_CASE("cuDNN plans attention of packed queries, keys and values") {
  require_plans(packed(CUDNN_DATA_BFLOAT16, 8, 1024, 12, 12, 64, true));
  require_plans(packed(CUDNN_DATA_HALF, 1, 8192, 32, 8, 128, true));
  require_plans(packed(CUDNN_DATA_BFLOAT16, 2, 197, 12, 12, 64, false));
}

TEST_CASE("cuDNN plans attention to other sequences") {
  require_plans(separate(100, 100, 4, 2, 72, true));
  require_plans(separate(50, 300, 8, 8, 64, false));
}

TEST_CASE("cuDNN plans attention of the smallest and the largest heads") {
  require_plans(packed(CUDNN_DATA_BFLOAT16, 2, 128, 4, 4, 8, true));
  require_plans(packed(CUDNN_DATA_BFLOAT16, 2, 128, 4, 4, 256, true));
}

TEST_CASE("cuDNN plans the convolutions of image models, with filters of their type") {
  const ConvolutionShape same{.batch = 8,
                              .in = 64,
                              .out = 64,
                              .x = {28, 28},
                              .y = {28, 28},
                              .kernel = {3, 3},
                              .stride = {1, 1},
                              .padding = {1, 1},
                              .dilation = {1, 1}};
  ConvolutionShape strided = same, grouped = same, dilated = same, of_pixels = same, odd = same;
  strided.stride = 2;
  strided.y = {14, 14};
  grouped.groups = 4;
  dilated.dilation = dilated.padding = 2;
  of_pixels.in = 3;
  odd.in = 5;
  odd.out = 7;
  using Pass = ConvolutionGraph::Pass;
  for (ConvolutionShape shape : {same, strided, grouped, dilated, of_pixels, odd}) {
    for (const DType operands : {DType::bfloat16, DType::float16, DType::float32, DType::float64}) {
      shape.operands = operands;
      for (const Pass pass : {Pass::forward, Pass::data, Pass::filter}) {
        CAPTURE(shape.in, shape.groups, shape.stride.height, shape.dilation.height, static_cast<int>(operands),
                static_cast<int>(pass));
        for (const bool tf32 : {false, true}) {
          CHECK_NOTHROW(plan_convolution(cudnn(), {.pass = pass, .shape = shape, .tf32 = tf32}, {.description = h200}));
        }
      }
    }
  }
}

TEST_CASE("products of float are exact unless TF32 is allowed") {
  const ConvolutionShape shape{.batch = 8,
                               .in = 64,
                               .out = 64,
                               .x = {28, 28},
                               .y = {28, 28},
                               .kernel = {3, 3},
                               .stride = {1, 1},
                               .padding = {1, 1},
                               .dilation = {1, 1}};
  const auto has_tensor_cores = [&](bool tf32) {
    return plan_convolution(cudnn(), {.pass = ConvolutionGraph::Pass::forward, .shape = shape, .tf32 = tf32},
                            {.description = h200})
        .has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  };
  CHECK(has_tensor_cores(true));
  CHECK(!has_tensor_cores(false));
}

TEST_CASE("a graph that cuDNN does not plan is an error that says so") {
  const auto plan = [](const AttentionGraph& graph) { plan_attention_forward(cudnn(), graph, {.description = h200}); };
  try {
    plan(packed(CUDNN_DATA_BFLOAT16, 2, 128, 4, 4, 20, true));
    FAIL("heads of 20 elements were planned");
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.code() == ErrorCode::not_available);
  }
}
