#include "trireme/files/safetensors.hpp"

#include <bit>
#include <cstdlib>
#include <fstream>
#include <numeric>

#include "catch.hpp"
#include "temporary_folder.hpp"

using namespace trireme;
using trireme::tests::TemporaryFolder;

namespace {

void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// A file with this header and as many zero bytes of data.
std::string file_with(std::string_view header, std::size_t data_bytes, std::uint64_t length) {
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  return text.append(header).append(data_bytes, '\0');
}

std::string refusal(std::string_view header, std::size_t data_bytes) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "bad.safetensors";
  write_text(path, file_with(header, data_bytes, header.size()));
  try {
    const SafetensorsFile file(path);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::corrupt_file);
    CHECK(error.fields().path == path.string());
    return error.what();
  }
  return "accepted";
}

const std::string one = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";

}  // namespace

TEST_CASE("what is written is read back") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "model.safetensors";
  std::vector<float> weight(6);
  std::iota(weight.begin(), weight.end(), 0.5F);
  const std::int64_t step = -3;
  const std::vector<std::uint8_t> bytes{1, 2, 3};
  const std::vector<TensorRef> tensors{
      {"bytes", DType::uint8, {3}, bytes.data()},
      {"layer.\"0\"/\u00e9", DType::float32, {2, 3}, weight.data()},
      {"step", DType::int64, {}, &step},
      {"empty", DType::float16, {0, 4}, nullptr},
  };
  write_safetensors(path, tensors, {{"format", "pt"}, {"note", "a\nb"}});

  const SafetensorsFile file(path);
  CHECK(file.tensors().size() == 4);
  CHECK(file.metadata() == SafetensorsMetadata{{"format", "pt"}, {"note", "a\nb"}});
  CHECK(file.read_values<float>("layer.\"0\"/\u00e9") == weight);
  CHECK(file.at("layer.\"0\"/\u00e9").shape == Shape{2, 3});
  CHECK(file.read_values<std::int64_t>("step") == std::vector{step});
  CHECK(file.read_values<std::uint8_t>("bytes") == bytes);
  CHECK(file.read_bytes("empty").empty());
  for (const SafetensorsEntry& entry : file.tensors()) CHECK(entry.begin % size_of(entry.dtype) == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);

  CHECK(file.find("absent") == nullptr);
  CHECK_THROWS_WITH(file.at("absent"), ContainsSubstring("absent") && ContainsSubstring(path.string()));
  CHECK_THROWS_WITH(file.read_values<double>("step"), ContainsSubstring("wanted float64; had int64"));
  std::vector<std::byte> too_small(7);
  CHECK_THROWS_WITH(file.read("step", too_small), ContainsSubstring("has 8 bytes"));
}

TEST_CASE("every byte but 0 of a bool is true") {
  const TemporaryFolder folder;
  const std::string header =
      R"({"a":{"dtype":"BOOL","shape":[6],"data_offsets":[0,6]},"b":{"dtype":"U8","shape":[1],"data_offsets":[6,7]}})";
  write_text(folder.path() / "bool.safetensors", file_with(header, 0, header.size()) + std::string("\2\377\0\1\200\4\200", 7));
  const SafetensorsFile file(folder.path() / "bool.safetensors");
  const std::vector<std::byte> bytes = file.read_bytes("a");
  CHECK(bytes == std::vector{std::byte{1}, std::byte{1}, std::byte{0}, std::byte{1}, std::byte{1}, std::byte{1}});
  std::byte last{};
  file.read_part("a", 5, std::span(&last, 1));
  CHECK(last == std::byte{1});
  CHECK(file.read_bytes("b") == std::vector{std::byte{128}});
}

TEST_CASE("a file cut at any byte is refused") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "model.safetensors";
  const float values[] = {1, 2};
  const std::vector<TensorRef> tensors{{"a", DType::float32, {1}, &values[0]}, {"b", DType::float32, {1}, &values[1]}};
  write_safetensors(path, tensors);
  const std::string whole = read_text(path);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_text(path, std::string_view(whole).substr(0, length));
    INFO("cut at " << length);
    CHECK_THROWS_AS(SafetensorsFile(path), Error);
  }
}

TEST_CASE("headers that break the format are refused with the reason") {
  CHECK(refusal("{" + one + "}", 4) == "accepted");
  CHECK(refusal("{" + one + "}  \n", 4) == "accepted");
  CHECK(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"extra":[{"x":null}]}})", 4) == "accepted");

  CHECK_THAT(refusal("{" + one + "," + one + "}", 4),
             ContainsSubstring("the tensor appears twice; in reading safetensors; name a"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4),
             ContainsSubstring("\"dtype\" appears twice"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}})", 4),
             ContainsSubstring("\"shape\" appears twice"));
  CHECK_THAT(refusal(R"({"__metadata__":{"k":"1","k":"2"}})", 0), ContainsSubstring("\"k\" of __metadata__ appears twice"));
  CHECK_THAT(refusal(R"({"__metadata__":{},"__metadata__":{}})", 0), ContainsSubstring("__metadata__ appears twice"));
  CHECK(refusal(R"({"__metadata__":null,)" + one + "}", 4) == "accepted");
  CHECK_THAT(refusal(R"({"__metadata__":null,"__metadata__":{}})", 0), ContainsSubstring("__metadata__ appears twice"));
  CHECK_THAT(refusal(R"({"a":null})", 0), ContainsSubstring("only an object is"));
  CHECK_THAT(refusal(R"({"__metadata__":{"k":1}})", 0), ContainsSubstring("only text is"));
  CHECK_THAT(refusal(R"({"__metadata__":{"k":null}})", 0), ContainsSubstring("only text is"));
  CHECK_THAT(refusal(R"({"__metadata__":{"k":{}}})", 0), ContainsSubstring("only text is"));
  CHECK_THAT(refusal(R"({"__metadata__":"k"})", 0), ContainsSubstring("only an object is"));
  CHECK_THAT(refusal(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4), ContainsSubstring("\"dtype\" is missing"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4), ContainsSubstring("\"shape\" is missing"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[1]}})", 4), ContainsSubstring("\"data_offsets\" is missing"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4), ContainsSubstring("fewer than two"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})", 4), ContainsSubstring("more than two"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4),
             ContainsSubstring("not allowed as a shape"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4),
             ContainsSubstring("not allowed as a shape"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4),
             ContainsSubstring("not allowed as a shape"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[-0],"data_offsets":[0,0]}})", 0),
             ContainsSubstring("not allowed as a shape"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,0]}})", 0),
             ContainsSubstring("too large"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1),
             ContainsSubstring("more than 6 dims"));
  CHECK_THAT(refusal(R"({"a":{"dtype":4,"shape":[1],"data_offsets":[0,4]}})", 4), ContainsSubstring("not allowed as a dtype"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4), ContainsSubstring("\"F33\""));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}})", 0),
             ContainsSubstring("too many elements"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4), ContainsSubstring("before it begins"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
             ContainsSubstring("takes 8 bytes, but data_offsets span 4"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8), ContainsSubstring("with a hole after"));
  CHECK_THAT(refusal("{" + one + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})", 6), ContainsSubstring("inside"));
  CHECK_THAT(refusal("{" + one + "}", 5), ContainsSubstring("take 4 bytes, but 5 bytes follow"));
  CHECK_THAT(refusal("{" + one + "}x", 4), ContainsSubstring("not valid JSON"));
  CHECK_THAT(refusal(" {" + one + "}", 4), ContainsSubstring("does not begin with {"));
  CHECK_THAT(refusal("", 0), ContainsSubstring("does not begin with {"));
  CHECK_THAT(refusal(std::string("{}\0x", 4), 0), ContainsSubstring("zero byte"));
  CHECK_THAT(refusal("{\"\xC3\x28\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4),
             ContainsSubstring("not valid JSON"));
  const std::string deep(100'000, '[');
  CHECK_THAT(refusal(R"({"a":{"x":)" + deep, 0), ContainsSubstring("nested deeper"));
}

TEST_CASE("a pointer of Git LFS is told from a file of tensors") {
  const TemporaryFolder folder;
  write_text(folder.path() / "model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 13\n");
  CHECK_THROWS_WITH(SafetensorsFile(folder.path() / "model.safetensors"), ContainsSubstring("a Git LFS pointer"));
}

TEST_CASE("header lengths that cannot be are refused before any memory is taken") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "bad.safetensors";
  for (const std::uint64_t length : {~std::uint64_t{0}, std::uint64_t{100'000'001}, std::uint64_t{3}}) {
    write_text(path, file_with("{}", 0, length));
    CHECK_THROWS_WITH(SafetensorsFile(path), ContainsSubstring("header"));
  }
}

TEST_CASE("a folder and a file that is not there are refused with their paths") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(SafetensorsFile(folder.path()), ContainsSubstring("this is a folder instead of a safetensors file"));
  CHECK_THROWS_WITH(SafetensorsFile(folder.path() / "absent"),
                    ContainsSubstring("No such file") && ContainsSubstring("absent"));
}

TEST_CASE("a write that fails leaves the old file and no other") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "model.safetensors";
  const float value = 1;
  const std::vector<TensorRef> good{{"a", DType::float32, {1}, &value}};
  write_safetensors(path, good);
  const std::string before = read_text(path);

  CHECK_THROWS_WITH(write_safetensors(path, std::vector{good[0], good[0]}), ContainsSubstring("two tensors have this name"));
  CHECK_THROWS_WITH(write_safetensors(path, std::vector<TensorRef>{{"__metadata__", DType::float32, {1}, &value}}),
                    ContainsSubstring("itself"));
  CHECK_THROWS_WITH(write_safetensors(path, std::vector<TensorRef>{{"a", DType::float32, {1}, nullptr}}),
                    ContainsSubstring("no data"));
  CHECK_THROWS_WITH(write_safetensors(path, std::vector<TensorRef>{{"\xFF", DType::float32, {1}, &value}}),
                    ContainsSubstring("UTF-8"));
  CHECK_THROWS_WITH(write_safetensors(folder.path() / "absent" / "x", good), ContainsSubstring("No such file"));
  std::filesystem::create_directory(folder.path() / "folder");
  CHECK_THROWS_WITH(write_safetensors(folder.path() / "folder", good), ContainsSubstring("cannot be renamed"));

  CHECK(read_text(path) == before);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
}
