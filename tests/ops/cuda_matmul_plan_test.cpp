#include <fstream>
#include <set>

#include "ops/compare.hpp"
#include "ops/matmul/cublaslt.hpp"
#include "ops/matmul/matmul_plan_cuda.hpp"
#include "ops/matmul/matmul_plans_cuda.hpp"
#include "ops/matmul/plan_file_cuda.hpp"
#include "ops/matmul/strided_batches_cuda.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/ops/matmul/batched_matmul.hpp"

// The calls of cuBLASLt for products, without a GPU: plain loops compute what the calls describe.
using namespace trireme;
using namespace trireme::ops;
using namespace trireme::ops::cuda;
using tests::TemporaryFolder;

namespace {

// The same as cublasLtMatmul with these operands, which are column-major.
struct ColumnMajorLoops {
  ColumnMajorProduct product;
  bool accumulate;

  static double at(const double* data, const ColumnMajorMatrix& matrix, bool transpose, std::int64_t row, std::int64_t column) {
    if (transpose) std::swap(row, column);
    REQUIRE((row < matrix.rows && column < matrix.columns && matrix.leading >= matrix.rows));
    return data[row + column * matrix.leading];
  }

  void run(std::int64_t batch, const MatmulOperands& operands) const {
    const auto& [transpose_first, transpose_second, first, second, result] = product;
    const std::int64_t depth = transpose_first ? first.rows : first.columns;
    for (std::int64_t p = 0; p < batch; ++p) {
      const double* a = static_cast<const double*>(operands.b) + p * first.stride;
      const double* b = static_cast<const double*>(operands.a) + p * second.stride;
      double* c = static_cast<double*>(operands.c) + p * result.stride;
      for (std::int64_t column = 0; column < result.columns; ++column) {
        for (std::int64_t row = 0; row < result.rows; ++row) {
          double& to = c[row + column * result.leading];
          double sum = accumulate ? to : 0;
          if (operands.bias != nullptr) sum += static_cast<const double*>(operands.bias)[row];
          for (std::int64_t k = 0; k < depth; ++k) {
            sum += at(a, first, transpose_first, row, k) * at(b, second, transpose_second, k, column);
          }
          to = sum;
        }
      }
    }
  }
};

MatmulShape shape_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k, .operands = DType::float64, .result = DType::float64};
}

// Row-major matrices of a batch by the loops above, in the products that strided_batches() says.
void multiply_by_loops(const Tensor<double>& a, const Tensor<double>& b, const Tensor<double>& c, const Shape& batch,
                       MatmulShape shape) {
  const bool accumulate = shape.accumulate;
  for (const StridedBatch& part : strided_batches(a.shape(), b.shape(), c.shape(), batch)) {
    shape.accumulate = accumulate || part.accumulate;
    const MatmulProblem problem{.shape = shape,
                                .batch = part.count,
                                .stride_a = part.stride.a * shape.m * shape.k,
                                .stride_b = part.stride.b * shape.k * shape.n,
                                .stride_c = part.stride.c * shape.m * shape.n};
    const MatmulOperands operands{.a = a.data() + part.first.a * shape.m * shape.k,
                                  .b = b.data() + part.first.b * shape.k * shape.n,
                                  .c = c.data() + part.first.c * shape.m * shape.n};
    ColumnMajorLoops{column_major(problem), shape.accumulate}.run(part.count, operands);
  }
}

constexpr double exact = 1e-13;

const PlanPlatform platform{"NVIDIA H200", 130100};
const TimedAlgorithm timed{{1, 2, 3, 4, 5, 6, 7, ~std::uint64_t{0}}, 1.25e-5};

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("cuBLASLt is found with every function that is used") {
  CHECK(cublaslt().version() / 10000 == CUBLAS_VER_MAJOR);
  CHECK_THROWS_WITH(check_cublas(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmul", "2x3x4"),
                    ContainsSubstring("cublasLtMatmul") && ContainsSubstring("2x3x4"));
}

TEST_CASE("cuBLASLt takes the description of every problem; without a handle it names no algorithm") {
  struct Types {
    DType operands;
    DType result;
  };
  for (const Types types :
       {Types{DType::float32, DType::float32}, Types{DType::float64, DType::float64}, Types{DType::bfloat16, DType::bfloat16},
        Types{DType::bfloat16, DType::float32}, Types{DType::float16, DType::float16}, Types{DType::float16, DType::float32},
        Types{DType::float8_e4m3, DType::bfloat16}, Types{DType::float8_e5m2, DType::float32}}) {
    for (const Gelu gelu : {Gelu::none, Gelu::forward, Gelu::backward}) {
      for (const bool bias : {false, true}) {
        CAPTURE(name_of(types.operands), name_of(types.result), static_cast<int>(gelu), bias);
        const MatmulShape shape{.m = 16, .n = 24, .k = 32, .bias = bias, .operands = types.operands, .result = types.result};
        const MatmulProblem problem{.shape = shape, .gelu = gelu, .batch = 3, .stride_a = 512, .stride_c = 384};
        if (gelu == Gelu::backward && bias) {
          CHECK_THROWS_WITH(MatmulPlan(nullptr, problem), ContainsSubstring("takes no bias"));
        } else {
          CHECK_THROWS_WITH(MatmulPlan(nullptr, problem).candidates(8), ContainsSubstring("cublasLtMatmulAlgoGetHeuristic"));
        }
      }
    }
  }
}

TEST_CASE("a row-major product is a column-major one with its operands changed") {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const bool accumulate : {false, true}) {
        CAPTURE(transpose_a, transpose_b, accumulate);
        MatmulShape shape = shape_of(5, 7, 3);
        shape.transpose_a = transpose_a;
        shape.transpose_b = transpose_b;
        shape.accumulate = accumulate;
        const auto a = random_tensor<double>(transpose_a ? Shape{3, 5} : Shape{5, 3}, 1);
        const auto b = random_tensor<double>(transpose_b ? Shape{7, 3} : Shape{3, 7}, 2);
        auto expected = random_tensor<double>({5, 7}, 3);
        const auto got = expected.clone();
        matmul(a, b, expected, {transpose_a, transpose_b, accumulate});
        ColumnMajorLoops{column_major({.shape = shape}), accumulate}.run(1, {.a = a.data(), .b = b.data(), .c = got.data()});
        require_close(got, as_doubles(expected), exact);
      }
    }
  }
}

TEST_CASE("the bias of a linear layer runs along the rows of the column-major result") {
  const auto x = random_tensor<double>({2, 3, 5}, 1);
  const auto weight = random_tensor<double>({4, 5}, 2);
  const auto bias = random_tensor<double>({4}, 3);
  Tensor<double> expected({2, 3, 4});
  linear(x, weight, bias, expected);
  const Tensor<double> got({2, 3, 4});
  MatmulShape shape = shape_of(6, 4, 5);
  shape.transpose_b = shape.bias = true;
  ColumnMajorLoops{column_major({.shape = shape}), false}.run(
      1, {.a = x.data(), .b = weight.data(), .bias = bias.data(), .c = got.data()});
  require_close(got, as_doubles(expected), exact);
}

TEST_CASE("broadcast batches are strided products, summed where the result has one matrix for many") {
  struct Case {
    Shape a;
    Shape b;
    std::size_t products;  // of the forward pass
  };
  for (const Case& one :
       {Case{{2, 3, 4, 5}, {2, 3, 5, 6}, 1}, Case{{2, 3, 4, 5}, {3, 5, 6}, 2}, Case{{2, 3, 4, 5}, {1, 1, 5, 6}, 1},
        Case{{2, 1, 4, 5}, {3, 5, 6}, 2}, Case{{4, 5}, {2, 3, 5, 6}, 1}, Case{{7, 1, 2, 4, 5}, {3, 1, 5, 6}, 6},
        Case{{1, 4, 5}, {1, 1, 5, 6}, 1}, Case{{0, 4, 5}, {1, 5, 6}, 0}}) {
    const auto a = random_tensor<double>(one.a, 1);
    const auto b = random_tensor<double>(one.b, 2);
    const Shape batch = batched_matmul_shape(one.a, one.b);
    CAPTURE(one.a.str(), one.b.str());
    CHECK(strided_batches(one.a, one.b, batch, batch).size() == one.products);
    for (const bool accumulate : {false, true}) {
      MatmulShape shape = shape_of(4, 6, 5);
      shape.accumulate = accumulate;
      auto expected = random_tensor<double>(batch, 3);
      const auto got = expected.clone();
      batched_matmul(a, b, expected, {.accumulate = accumulate});
      multiply_by_loops(a, b, got, batch, shape);
      require_close(got, as_doubles(expected), exact);

      BatchedMatmulBackward<double, Cpu> pass{.a = a, .b = b, .dc = random_tensor<double>(batch, 4)};
      pass.da = random_tensor<double>(one.a, 5);
      pass.db = random_tensor<double>(one.b, 6);
      pass.accumulate_da = pass.accumulate_db = accumulate;
      const auto da = pass.da.clone();
      const auto db = pass.db.clone();
      batched_matmul_backward(pass);
      if (batch.numel() == 0) continue;  // sums of nothing are no products
      shape = shape_of(4, 5, 6);
      shape.transpose_b = true;
      shape.accumulate = accumulate;
      multiply_by_loops(pass.dc, b, da, batch, shape);
      require_close(da, as_doubles(pass.da), exact);
      shape = shape_of(5, 6, 4);
      shape.transpose_a = true;
      shape.accumulate = accumulate;
      multiply_by_loops(a, pass.dc, db, batch, shape);
      require_close(db, as_doubles(pass.db), exact);
    }
  }
}

TEST_CASE("no batch has more products than a grid has blocks in its third dim") {
  const Shape many{70'000, 2, 3};
  const auto batches = strided_batches(many, {3, 4}, {70'000, 2, 4}, {70'000, 2, 4});
  REQUIRE(batches.size() == 2);
  CHECK(batches[0].count == 65'535);
  CHECK(batches[1].count == 70'000 - 65'535);
  CHECK(batches[1].first == OperandPlaces{65'535, 0, 65'535});
  CHECK_FALSE(batches[1].accumulate);
}

TEST_CASE("every property of a problem makes another problem and another text") {
  const MatmulProblem base{.shape = shape_of(2, 3, 4), .batch = 2};
  std::vector<MatmulProblem> problems{base};
  const auto vary = [&](auto change) { change(problems.emplace_back(base)); };
  vary([](MatmulProblem& problem) { problem.shape.m = 5; });
  vary([](MatmulProblem& problem) { problem.shape.n = 5; });
  vary([](MatmulProblem& problem) { problem.shape.k = 5; });
  vary([](MatmulProblem& problem) { problem.shape.transpose_a = true; });
  vary([](MatmulProblem& problem) { problem.shape.transpose_b = true; });
  vary([](MatmulProblem& problem) { problem.shape.accumulate = true; });
  vary([](MatmulProblem& problem) { problem.shape.bias = true; });
  vary([](MatmulProblem& problem) { problem.shape.operands = DType::bfloat16; });
  vary([](MatmulProblem& problem) { problem.shape.result = DType::float32; });
  vary([](MatmulProblem& problem) { problem.gelu = Gelu::forward; });
  vary([](MatmulProblem& problem) { problem.gelu = Gelu::backward; });
  vary([](MatmulProblem& problem) { problem.tf32 = true; });
  vary([](MatmulProblem& problem) { problem.batch = 3; });
  vary([](MatmulProblem& problem) { problem.stride_a = 8; });
  vary([](MatmulProblem& problem) { problem.stride_b = 8; });
  vary([](MatmulProblem& problem) { problem.stride_c = 8; });
  vary([](MatmulProblem& problem) { problem.alignment = 16; });
  std::set<MatmulProblem> different(problems.begin(), problems.end());
  std::set<std::string> texts;
  for (const MatmulProblem& problem : problems) texts.insert(describe(problem));
  CHECK(different.size() == problems.size());
  CHECK(texts.size() == problems.size());
  CHECK(describe(base) == "2x3x4 nn float64 to float64, aligned 1, 2 of strides 0, 0, 0");
}

TEST_CASE("the alignment of operands is that of the least aligned one") {
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  CHECK(alignment_of({.a = at(4096), .b = at(8192), .c = at(512)}) == 64);
  CHECK(alignment_of({.a = at(4096), .b = at(8192), .bias = at(48), .c = at(512)}) == 16);
  CHECK(alignment_of({.a = at(4096), .b = at(8192), .gelu_input = at(8), .c = at(512)}) == 8);
  CHECK(alignment_of({.a = at(4098), .b = at(8192), .c = at(512)}) == 2);
}

TEST_CASE("a problem's result ends with its last matrix") {
  CHECK(result_elements({.shape = shape_of(2, 3, 4)}) == 6);
  CHECK(result_elements({.shape = shape_of(2, 3, 4), .batch = 5, .stride_c = 10}) == 46);
}

TEST_CASE("timed plans come back from their text") {
  const TimedPlans plans{{"first", timed}, {"second", {{}, 2}}};
  CHECK(from_json(to_json(platform, plans), platform) == plans);
  CHECK_THROWS_WITH(from_json(to_json({"NVIDIA H100", 130100}, plans), platform),
                    ContainsSubstring("made for NVIDIA H100 with cuBLASLt 130100, here are NVIDIA H200 and 130100"));
  CHECK_THROWS_WITH(from_json(to_json({"NVIDIA H200", 120805}, plans), platform), ContainsSubstring("120805"));
  CHECK_THROWS_WITH(from_json("{}", platform), ContainsSubstring("it holds no timed plans"));
  CHECK_THROWS_WITH(from_json("", platform), ContainsSubstring("it holds no timed plans"));
  CHECK_THROWS_WITH(from_json(R"({"format": 2})", platform), ContainsSubstring("its format is 2"));
}

TEST_CASE("timed plans are kept where TRIREME_PLAN_CACHE says, else in the home folder") {
  CHECK(plan_folder("/here", "/home/a") == "/here");
  CHECK(plan_folder(nullptr, "/home/a") == "/home/a/.cache/trireme");
  CHECK(plan_folder("", "/home/a").empty());
  CHECK(plan_folder(nullptr, nullptr).empty());
}

TEST_CASE("a file of timed plans grows by what each process adds") {
  const TemporaryFolder temporary;
  const auto folder = temporary.path() / "made" / "when needed";
  PlanFile one(folder, platform);
  PlanFile two(folder, platform);
  CHECK(one.find("a") == nullptr);
  one.add("a", timed);
  two.add("b", {{}, 2});
  const PlanFile later(folder, platform);
  REQUIRE(later.find("a") != nullptr);
  CHECK(*later.find("a") == timed);
  REQUIRE(later.find("b") != nullptr);
  CHECK(PlanFile(folder, {"NVIDIA H100", 130100}).find("a") == nullptr);
  CHECK(std::filesystem::exists(folder / "matmul-nvidia-h200-cublaslt-130100.json"));
}

TEST_CASE("a file of timed plans that can't be used is passed over and replaced") {
  const TemporaryFolder temporary;
  const auto path = temporary.path() / "matmul-nvidia-h200-cublaslt-130100.json";
  std::ofstream(path) << "no JSON";
  PlanFile file(temporary.path(), platform);
  CHECK(file.find("a") == nullptr);
  file.add("a", timed);
  CHECK(from_json(text_of(path), platform) == TimedPlans{{"a", timed}});
}

TEST_CASE("where no file can be written timed plans last as long as the process") {
  const TemporaryFolder temporary;
  std::ofstream(temporary.path() / "file") << "";
  for (const auto& folder : {temporary.path() / "file" / "folder", std::filesystem::path()}) {
    PlanFile file(folder, platform);
    file.add("a", timed);
    file.add("b", timed);
    CHECK(file.find("a") != nullptr);
    CHECK(file.find("b") != nullptr);
  }
}

TEST_CASE("TRIREME_MATMUL_PLANS is timed or heuristic") {
  CHECK(plan_choice(nullptr) == PlanChoice::timed);
  CHECK(plan_choice("timed") == PlanChoice::timed);
  CHECK(plan_choice("heuristic") == PlanChoice::heuristic);
  CHECK_THROWS_WITH(plan_choice("best"), ContainsSubstring("TRIREME_MATMUL_PLANS is \"best\""));
}
