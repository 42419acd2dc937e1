#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>

#include "catch.hpp"
#include "commands.hpp"
#include "fixtures.hpp"
#include "temporary_folder.hpp"
#include "trireme/checkpoint/checkpoint_reader.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/core/error.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;

namespace {

// A GPT-2 of two layers, its tensors in memory.
struct SmallGpt {
  static constexpr std::int64_t width = 4;
  std::vector<std::pair<std::string, Shape>> tensors{{"wte.weight", {7, width}}, {"wpe.weight", {5, width}}};
  std::vector<float> values = std::vector<float>(7 * 16 * width);

  SmallGpt() {
    for (std::size_t index = 0; index < values.size(); ++index) values[index] = static_cast<float>(index) + 0.5F;
    for (const std::string layer : {"h.0.", "h.1."}) {
      for (const auto& [name, shape] : {std::pair<std::string, Shape>{"ln_1.weight", {width}},
                                        {"ln_1.bias", {width}},
                                        {"attn.c_attn.weight", {width, 3 * width}},
                                        {"attn.c_attn.bias", {3 * width}},
                                        {"attn.c_proj.weight", {width, width}},
                                        {"attn.c_proj.bias", {width}},
                                        {"ln_2.weight", {width}},
                                        {"ln_2.bias", {width}},
                                        {"mlp.c_fc.weight", {width, 4 * width}},
                                        {"mlp.c_fc.bias", {4 * width}},
                                        {"mlp.c_proj.weight", {4 * width, width}},
                                        {"mlp.c_proj.bias", {width}}})
        tensors.emplace_back(layer + name, shape);
    }
    tensors.emplace_back("ln_f.weight", Shape{width});
    tensors.emplace_back("ln_f.bias", Shape{width});
  }

  Shape& shape_of(const std::string& wanted) {
    for (auto& [name, shape] : tensors) {
      if (name == wanted) return shape;
    }
    throw std::out_of_range(wanted);
  }

  std::string write(const std::filesystem::path& path, DType dtype = DType::float32) const {
    std::vector<TensorRef> refs;
    for (const auto& [name, shape] : tensors) refs.push_back({name, dtype, shape, values.data() + refs.size()});
    write_safetensors(path, refs);
    return path.string();
  }
};

// The error of an import. Checks that a refused import leaves no directory.
std::string refusal(const SmallGpt& gpt, DType dtype = DType::float32) {
  const tests::TemporaryFolder folder;
  const std::string file = gpt.write(folder.path() / "gpt", dtype);
  try {
    ckpt::import_weights(file, (folder.path() / "run").string());
  } catch (const Error& error) {
    CHECK(error.fields().path == file);
    CHECK_FALSE(std::filesystem::exists(folder.path() / "run"));
    return error.what();
  }
  return "accepted";
}

void expect_same_tensors(const std::string& before, const std::string& after, const std::string& prefix = {}) {
  const SafetensorsFile original(before);
  const SafetensorsFile copy(after);
  REQUIRE(original.tensors().size() == copy.tensors().size());
  for (const SafetensorsEntry& tensor : original.tensors()) {
    CAPTURE(tensor.name);
    const SafetensorsEntry& same = copy.at(prefix + tensor.name);
    CHECK((same.shape == tensor.shape && same.dtype == tensor.dtype));
    CHECK(copy.read_bytes(same.name) == original.read_bytes(tensor.name));
  }
}

// export(import(file))
std::string again(const std::string& file, const std::filesystem::path& folder) {
  const std::string run = (folder / "run").string();
  CHECK(ckpt::import_weights(file, run) == 0);
  const auto step = checkpoint::checkpoint_folder(run, 0).string();
  const auto exported = (folder / "exported").string();
  CHECK(ckpt::export_weights({.run = step, .file = exported}) == 0);
  const checkpoint::CheckpointReader reader(step);
  CHECK(reader.problems().empty());
  CHECK(reader.manifest().step == 0);
  CHECK(reader.manifest().imported->source == file);
  return exported;
}

// The output of an action.
std::string output_of(const std::filesystem::path& file, const std::function<void()>& action) {
  std::fflush(stdout);
  const int before = dup(STDOUT_FILENO);
  const int to = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(to, STDOUT_FILENO);
  action();
  std::fflush(stdout);
  dup2(before, STDOUT_FILENO);
  close(to);
  close(before);
  std::ifstream text(file);
  return {std::istreambuf_iterator<char>(text), {}};
}

}  // namespace

TEST_CASE("two checkpoints: by how much numbers differ, also where they are nan, codes or large") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr std::int64_t large = std::int64_t{1} << 60;
  const tests::TemporaryFolder folder;
  const auto save = [&](const char* name, std::vector<float> numbers, std::vector<float> lost, std::vector<std::uint8_t> codes,
                        std::vector<std::int64_t> counts) {
    State state;
    state.add("codes", Shape{2}, codes.data());
    state.add("counts", Shape{2}, counts.data());
    state.add("lost", Shape{2}, lost.data());
    state.add("numbers", Shape{3}, numbers.data());
    testing::run_ranks(1, [&](const Group& world) {
      checkpoint::Checkpoints(world, {.directory = folder.path() / name, .asynchronous = false}).save(1, state);
    });
    return (folder.path() / name).string();
  };
  const std::string before = save("before", {1, nan, 3}, {1, 2}, {10, 20}, {large, 5});
  const std::string after = save("after", {1.5F, 2, 3}, {nan, 2}, {200, 20}, {large + 1, 5});
  CHECK(output_of(folder.path() / "out", [&] { CHECK(ckpt::diff(before, after) == 1); }) ==
        "tensor codes: 1 of 2 elements differ; the elements are uint8 codes, so the size of the differences is not given\n"
        "tensor counts: 1 of 2 elements differ, by 1 at most\n"
        "tensor lost: 1 of 2 elements differ, 1 of them nan in one or both\n"
        "tensor numbers: 2 of 3 elements differ, by 0.5 at most, 1 of them nan in one or both\n");
}

TEST_CASE("a trained GPT-2 is exported as it was imported") {
  const auto refs = tests::refs_folder();
  if (!refs) return;
  for (const auto& [name, entry] : tests::trained_models()) {
    if (!name.starts_with("gpt") || !entry.contains("pretrained")) {
      tests::list_skipped(name, "no trained GPT");
      continue;
    }
    CAPTURE(name);
    const tests::TemporaryFolder folder;
    const auto file = (*refs / entry.at("pretrained").at("file").get<std::string>()).string();
    expect_same_tensors(file, again(file, folder.path()));
  }
}

TEST_CASE("a GPT-2 whose names lack transformer. gets them") {
  const SmallGpt gpt;
  const tests::TemporaryFolder folder;
  const std::string file = gpt.write(folder.path() / "gpt");
  expect_same_tensors(file, again(file, folder.path()), "transformer.");
}

TEST_CASE("what is no such GPT-2 is one error") {
  CHECK(refusal(SmallGpt()) == "accepted");
  SmallGpt gpt;
  gpt.shape_of("h.1.attn.c_attn.weight") = {12, 4};
  CHECK_THAT(refusal(gpt), ContainsSubstring("name h.1.attn.c_attn.weight") &&
                               ContainsSubstring("wanted float32 [4, 12]; had float32 [12, 4]"));
  gpt = {};
  gpt.shape_of("h.0.mlp.c_fc.weight") = {4, 15};
  CHECK_THAT(refusal(gpt), ContainsSubstring("wanted float32 [4, 16]; had float32 [4, 15]"));
  gpt = {};
  gpt.shape_of("wte.weight") = {28};
  CHECK_THAT(refusal(gpt), ContainsSubstring("is not a matrix") && ContainsSubstring("wte.weight"));
  gpt = {};
  gpt.shape_of("wte.weight") = {0, std::int64_t{1} << 60};
  CHECK_THAT(refusal(gpt), ContainsSubstring("is not a matrix"));
  gpt = {};
  gpt.tensors.erase(gpt.tensors.begin() + 5);
  CHECK_THAT(refusal(gpt), ContainsSubstring("lacks a tensor of the model; name transformer.h.0.attn.c_attn.bias"));
  gpt = {};
  gpt.tensors.emplace_back("h.0.attn.c_extra.weight", Shape{1});
  CHECK_THAT(refusal(gpt), ContainsSubstring("a tensor that the model lacks; name h.0.attn.c_extra.weight"));
  gpt = {};
  gpt.tensors.resize(2);
  CHECK_THAT(refusal(gpt), ContainsSubstring("lacks a tensor of the model"));
  CHECK_THAT(refusal(SmallGpt(), DType::float64),
             ContainsSubstring("wanted float32, bfloat16 or float16 [4, 16]; had float64 [4, 16]"));
  CHECK(refusal(SmallGpt(), DType::float16) == "accepted");
}
