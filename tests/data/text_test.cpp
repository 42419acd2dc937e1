#include "trireme/data/text/text.hpp"

#include <sys/stat.h>

#include <fstream>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/text/token_dataset.hpp"
#include "trireme/data/text/vocabulary.hpp"

using namespace trireme;
using namespace trireme::data;
using trireme::tests::TemporaryFolder;

namespace {

void write(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

std::vector<std::int32_t> window(const TokenDataset& dataset, std::int64_t position, std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  dataset.window(position, tokens);
  return tokens;
}

}  // namespace

TEST_CASE("a folder's files are joined in the order of their paths") {
  const TemporaryFolder folder;
  write(folder.path() / "b.txt", "second");
  write(folder.path() / "a.txt", "first\n");
  std::filesystem::create_directory(folder.path() / "c");
  write(folder.path() / "c" / "d.txt", std::string("th\1rd\xFF", 6));
  REQUIRE(mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  CHECK(read_text(folder.path()) == std::string("first\n\nsecond\nth\1rd\xFF", 20));
  CHECK(read_text(folder.path() / "b.txt") == "second");
}

TEST_CASE("hidden files are passed over, linked ones and folders are read") {
  namespace fs = std::filesystem;
  const TemporaryFolder folder, elsewhere;
  write(folder.path() / "a.txt", "a");
  for (const char* hidden : {".git", ".ipynb_checkpoints"}) {
    fs::create_directory(folder.path() / hidden);
    write(folder.path() / hidden / "a.txt", "copy");
  }
  write(folder.path() / ".a.txt.swp", std::string(3, '\0'));
  fs::create_symlink("nowhere", folder.path() / ".#a.txt");
  write(elsewhere.path() / "b.txt", "b");
  write(elsewhere.path() / ".b.txt", "copy");
  fs::create_symlink(elsewhere.path(), folder.path() / "linked");
  fs::create_symlink(elsewhere.path() / "b.txt", folder.path() / "z.txt");
  CHECK(read_text(folder.path()) == "a\nb\nb");
  CHECK(read_text(folder.path() / "linked") == "b");
  CHECK(read_text(folder.path() / ".git") == "copy");  // named by hand
}

TEST_CASE("links that lead nowhere or in a circle are refused by name") {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "part" / "deep");
  write(folder.path() / "part" / "deep" / "a.txt", "a");
  const auto check = [&](const char* to, const char* message) {
    const fs::path link = folder.path() / "part" / "deep" / "link";
    CAPTURE(to);
    fs::create_symlink(to, link);
    try {
      read_text(folder.path());
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::io);
      CHECK_THAT(error.what(), ContainsSubstring("deep/link") && ContainsSubstring(message));
    }
    fs::remove(link);
  };
  check("nowhere", "leads to no file and no folder");
  check("link", "leads to no file and no folder");
  check(".", "leads back to a folder that it lies in");
  check("../../part", "leads back to a folder that it lies in");
  CHECK(read_text(folder.path()) == "a");
  fs::create_symlink("self", folder.path() / "self");
  CHECK_THROWS_AS(read_text(folder.path() / "self"), Error);
  CHECK_THROWS_AS(read_text(std::string(5000, 'x')), Error);
}

TEST_CASE("text that cannot be read is an error with its path") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(read_text(folder.path()), ContainsSubstring("no text") && ContainsSubstring(folder.path().string()));
  write(folder.path() / "empty", "");
  CHECK_THROWS_WITH(read_text(folder.path() / "empty"), ContainsSubstring("no text"));
  CHECK_THROWS_WITH(read_text(folder.path() / "absent"), ContainsSubstring("absent") && ContainsSubstring("No such file"));
}

TEST_CASE("what is no text is refused by its name") {
  const TemporaryFolder folder;
  const auto check = [&](std::string_view content, const char* what) {
    write(folder.path() / "a.txt", "text");
    write(folder.path() / "given", content);
    CHECK_THROWS_WITH(read_text(folder.path() / "given"), ContainsSubstring("/given") && ContainsSubstring(what));
    CHECK_THROWS_WITH(read_text(folder.path()), ContainsSubstring("/given") && ContainsSubstring(what));
  };
  check(std::string_view("\x1f\x8b\x08", 3), "gzip");
  check("PK\x03\x04rest", "zip archive");
  check("\x89PNG\r\n", "PNG picture");
  check("\xff\xd8\xff\xe0", "JPEG picture");
  check(std::string_view("\0\0\x08\x03\0\0", 6), "MNIST's images");
  check(std::string_view("a text, almost\0", 15), "byte 14 of it is zero");
  check("BZh91AY&SY...", "bzip2");
  write(folder.path() / "given", "BZhang writes");
  CHECK(read_text(folder.path() / "given") == "BZhang writes");
  write(folder.path() / "given", "P");
  CHECK(read_text(folder.path() / "given") == "P");
}

TEST_CASE("windows start anywhere and end inside") {
  const auto dataset = TokenDataset::from_bytes("abcdef\xFF");
  CHECK(dataset.size() == 7);
  CHECK(window(dataset, 1, 3) == std::vector<std::int32_t>{'b', 'c', 'd'});
  CHECK(window(dataset, 6, 1) == std::vector<std::int32_t>{255});
  CHECK(window(dataset, 7, 0).empty());
  CHECK_THROWS_WITH(window(dataset, 6, 2), ContainsSubstring("2 tokens from 6 on"));
  CHECK_THROWS_AS(window(dataset, -1, 1), Error);
  CHECK_THROWS_AS(window(dataset, 0, 8), Error);

  const auto middle = dataset.part(2, 3);
  CHECK(window(middle, 0, 3) == std::vector<std::int32_t>{'c', 'd', 'e'});
  CHECK_THROWS_AS(window(middle, 1, 3), Error);
  CHECK_THROWS_AS(dataset.part(5, 3), Error);
}

TEST_CASE("token files are mapped in all their widths") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "tokens.bin";
  const auto map = [&](const auto& tokens, DType dtype) {
    write(path, {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof tokens[0]});
    return TokenDataset::map(path, dtype);
  };
  CHECK(window(map(std::vector<std::uint8_t>{1, 200}, DType::uint8), 0, 2) == std::vector<std::int32_t>{1, 200});
  CHECK(window(map(std::vector<std::uint16_t>{1, 50256, 3}, DType::uint16), 1, 2) == std::vector<std::int32_t>{50256, 3});
  const auto wide = map(std::vector<std::uint32_t>{7, 1U << 31}, DType::uint32);
  CHECK(window(wide, 0, 1) == std::vector<std::int32_t>{7});
  CHECK_THROWS_WITH(window(wide, 1, 1), ContainsSubstring("2147483648"));

  write(path, "abc");
  CHECK_THROWS_WITH(TokenDataset::map(path, DType::uint16), ContainsSubstring("3 bytes") && ContainsSubstring(path.string()));
  CHECK_THROWS_WITH(TokenDataset::map(path, DType::float32), ContainsSubstring("float32"));
  write(path, "");
  CHECK_THROWS_AS(TokenDataset::map(path, DType::uint8), Error);
}

TEST_CASE("the first part trains, the last validates") {
  const auto [training, validation] = split(TokenDataset::from_bytes("0123456789"), 0.2);
  CHECK(training.size() == 8);
  CHECK(window(validation, 0, 2) == std::vector<std::int32_t>{'8', '9'});
  CHECK(split(training, 0).validation.size() == 0);
  CHECK_THROWS_WITH(split(training, 1), ContainsSubstring("[0, 1)"));
}

TEST_CASE("a vocabulary of characters numbers the bytes that occur by their value") {
  const std::string text = "hello \xc3\xa9\n";
  const Vocabulary vocabulary = Vocabulary::characters(text);
  CHECK(vocabulary.size() == 8);
  CHECK(vocabulary.encode("\n h\xc3") == std::vector<std::int32_t>{0, 1, 3, 7});
  CHECK(vocabulary.decode(vocabulary.encode(text)) == text);
  CHECK_THROWS_WITH(vocabulary.encode("hex"), ContainsSubstring("the byte 120 at 2"));
}

TEST_CASE("a vocabulary is written as a line of ASCII and read again") {
  const std::string text("l'\xc3\xa9t\xc3\xa9 100% \0\xff\n", 16);
  const Vocabulary words = Vocabulary::words(text, 100);
  const Vocabulary characters = Vocabulary::characters(text);
  CHECK(words.to_text() == "words <unk> %00%FF 100%25 <eos> l'%C3%A9t%C3%A9");
  CHECK(Vocabulary::from_text(words.to_text()) == words);
  CHECK(Vocabulary::from_text(characters.to_text()) == characters);
  CHECK(Vocabulary::from_text(characters.to_text()).encode(text) == characters.encode(text));
  CHECK_FALSE(Vocabulary::words(text, 4) == words);
  for (const char* wrong : {"", "words", "words a", "words <unk> ", "words <unk> a a", "words <unk> %0g", "words <unk> %0a",
                            "words <unk> %4", "words <unk> %41", "characters ab", "characters a a", "bytes <unk>"}) {
    CHECK_THROWS_WITH(Vocabulary::from_text(wrong), ContainsSubstring("is not a vocabulary"));
  }
}

TEST_CASE("a vocabulary of words holds the most frequent ones and <unk>") {
  const std::string text = "b a b\nc  b a\n";
  const Vocabulary all = Vocabulary::words(text, 100);
  CHECK(all.size() == 5);
  CHECK(all.encode(text) == std::vector<std::int32_t>{1, 3, 1, 2, 4, 1, 3, 2});
  CHECK(all.decode(all.encode(text)) == "b a b\nc b a\n");
  const Vocabulary three = Vocabulary::words(text, 3);
  CHECK(three.size() == 3);
  CHECK(three.decode(three.encode("b c b")) == "b <unk> b");
  CHECK_THROWS_AS(Vocabulary::words(text, 1), Error);
  const TokenDataset tokens = TokenDataset::from_tokens({5, 70'000, 0});
  CHECK(window(tokens, 1, 2) == std::vector<std::int32_t>{70'000, 0});
}
