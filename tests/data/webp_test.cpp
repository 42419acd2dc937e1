#include <webp/encode.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/image_files.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/images/read_image_folder.hpp"

using namespace trireme;

namespace {

constexpr int height = 5, width = 7;

std::vector<std::uint8_t> pixels() {
  std::vector<std::uint8_t> values;
  for (int i = 0; i < height * width * 3; ++i) values.push_back(static_cast<std::uint8_t>(i * 37));
  return values;
}

tests::Bytes lossless() {
  const auto values = pixels();
  std::uint8_t* encoded = nullptr;
  const std::size_t bytes = WebPEncodeLosslessRGB(values.data(), width, height, 3 * width, &encoded);
  tests::Bytes file(encoded, encoded + bytes);
  WebPFree(encoded);
  return file;
}

std::string error_of(const tests::Bytes& file) {
  const tests::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "class");
  tests::write_bytes(folder.path() / "class" / "a.webp", file);
  try {
    data::read_image_folder(folder.path(), {.height = height, .width = width});
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("WebP images are read with their pixels") {
  const tests::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "class");
  tests::write_bytes(folder.path() / "class" / "a.webp", lossless());
  const auto images = data::read_image_folder(folder.path(), {.height = height, .width = width}).images;
  const auto image = images.image(0);
  CHECK(std::vector<std::uint8_t>(image.begin(), image.end()) == pixels());
}

TEST_CASE("damaged and moving WebP images are refused by name") {
  tests::Bytes file = lossless();
  tests::Bytes cut(file.begin(), file.end() - 8);
  CHECK_THAT(error_of(cut), ContainsSubstring("is damaged") && ContainsSubstring("a.webp"));
  CHECK_THAT(error_of(tests::Bytes(file.begin(), file.begin() + 14)), ContainsSubstring("is damaged"));
  // An extended header that says there is an animation of 1 x 1 pixels.
  tests::Bytes moving{'R', 'I', 'F', 'F', 22, 0, 0, 0, 'W', 'E', 'B', 'P', 'V', 'P', '8',
                      'X', 10,  0,   0,   0,  2, 0, 0, 0,   0,   0,   0,   0,   0,   0};
  CHECK_THAT(error_of(moving), ContainsSubstring("is an animation"));
}
