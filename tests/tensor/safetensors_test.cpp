#include "trireme/tensor/safetensors.hpp"

#include "catch.hpp"
#include "temporary_folder.hpp"

// Tensors of the host in safetensors files.
using namespace trireme;

TEST_CASE("tensors are written and read by their names") {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "tensors.safetensors";
  const auto x = Tensor<float>::from({2, 2}, {1, 2.5F, -3, 4});
  const auto scalar = Tensor<float>::full({}, 7);
  const auto classes = Tensor<std::int32_t>::from({3}, {2, 0, 1});
  const auto mask = Tensor<bool>::full({2}, true);
  const Tensor<double> nothing({0, 5});
  write_safetensors(path, std::vector{tensor_ref("x", x), tensor_ref("scalar", scalar), tensor_ref("classes", classes),
                                      tensor_ref("mask", mask), tensor_ref("nothing", nothing)});
  const SafetensorsFile file(path);
  CHECK(read_tensor<float>(file, "x").shape() == x.shape());
  CHECK(read_tensor<float>(file, "x").to_vector() == x.to_vector());
  CHECK(read_tensor<float>(file, "scalar").item() == 7);
  CHECK(read_tensor<std::int32_t>(file, "classes").to_vector() == classes.to_vector());
  CHECK(read_tensor<bool>(file, "mask").at(1));
  CHECK(read_tensor<double>(file, "nothing").shape() == Shape{0, 5});
  const auto floats = read_tensors<float>(file);
  CHECK(floats.size() == 2);
  CHECK(floats.at("x").at(1, 0) == -3);
  CHECK(read_tensors<std::int64_t>(file).empty());
  CHECK_THROWS_WITH(read_tensor<double>(file, "x"), ContainsSubstring("float32"));
  CHECK_THROWS_AS(read_tensor<float>(file, "y"), Error);
  CHECK_THROWS_WITH(tensor_ref("z", Tensor<float>()), "z: a tensor that is undefined can't be stored");
}
