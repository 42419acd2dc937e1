#include "trireme/data/shards/json_lines.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/counted_file_system.hpp"
#include "data/documents/raw_documents.hpp"
#include "data/tar_files.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/loaders/loader.hpp"

using namespace trireme;
using namespace trireme::data;
using tests::TemporaryFolder;
using tests::write_text;

namespace {

std::vector<std::string> texts_of(const JsonLines& lines) {
  std::vector<std::string> texts;
  for (std::int64_t line = 0; line < lines.size(); ++line) texts.emplace_back(lines.at(line).text);
  return texts;
}

std::string numbered_lines(int count) {
  std::string text;
  for (int line = 0; line < count; ++line) {
    text += fmt::format("{{\"text\": \"{}{}\"}}{}\n", line, std::string(static_cast<std::size_t>(line * 37 % 90), 'x'),
                        line % 3 == 0 ? "\r" : "");
    if (line % 5 == 0) text += line % 2 == 0 ? "\n" : " \t\r\n";
  }
  return text;
}

}  // namespace

TEST_CASE("lines of files are items, whatever ends them") {
  const TemporaryFolder folder;
  write_text(folder.path() / "1",
             "\xef\xbb\xbf"
             "a\r\n\n  \nbc\n\r\n d ");
  write_text(folder.path() / "2", "");
  write_text(folder.path() / "3", "\n\n");
  write_text(folder.path() / "4", "e\n");
  const JsonLines lines({folder.path() / "1", folder.path() / "2", folder.path() / "3", folder.path() / "4"});
  CHECK(texts_of(lines) == std::vector<std::string>{"a", "bc", " d ", "e"});
  CHECK(lines.at(1).byte == 10);
  std::filesystem::copy(folder.path() / "1", folder.path() / "1.jsonl");
  const std::vector<Location> file{folder.path() / "1.jsonl"};
  RawDocuments documents(file, {}, {}, {});
  for (std::int64_t line = 0; line < 3; ++line) {
    const auto document = documents.next();
    REQUIRE(document);
    CHECK(document->text == lines.at(line).text);
    CHECK(document->place == DocumentPlace{0, static_cast<std::int64_t>(lines.at(line).byte)});
  }
  CHECK_FALSE(documents.next());
  CHECK(lines.at(3).file == folder.path() / "4");
  CHECK_THROWS_WITH(lines.at(4), ContainsSubstring("sample 4 does not exist among 4"));
  CHECK_THAT(content_of(lines), ContainsSubstring("4 lines in 4 files"));
  CHECK_THROWS_AS(JsonLines({}), Error);
  write_text(folder.path() / "5", "\x1f\x8b\x08");
  CHECK_THROWS_WITH(JsonLines({folder.path() / "5"}), ContainsSubstring("packed by gzip") && ContainsSubstring("gunzip"));
}

TEST_CASE("the index of lines is kept beside their file, and read by requests elsewhere") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "x.jsonl";
  for (const int count : {1, 7, 8, 9, 100}) {
    write_text(path, numbered_lines(count));
    const JsonLines lines({path});
    REQUIRE(lines.size() == count);
    for (int line = 0; line < count; ++line) CHECK(text_of(lines.at(line), "text").starts_with(std::to_string(line)));
    lines.write_index();
    CHECK(texts_of(JsonLines({path})) == texts_of(lines));
    CHECK(content_of(JsonLines({path})) == content_of(lines));
  }
  const auto system = std::make_shared<tests::CountedFileSystem>();
  add_file_system("counted-lines", system);
  std::string longer = std::string(20 << 20, 'a') + "\n" + numbered_lines(30) + std::string((16 << 20) - 5, ' ') + "end";
  write_text(folder.path() / "long", longer);
  const JsonLines near({folder.path() / "long"}), far({Location("counted-lines:" + (folder.path() / "long").string())});
  CHECK(near.size() == 32);
  CHECK(content_of(near) == content_of(far));
  CHECK(near.at(31).byte == far.at(31).byte);
  const int before = system->requests();
  CHECK(far.at(12).text == near.at(12).text);
  CHECK(system->requests() == before + 1);
  write_text(path, numbered_lines(50) + std::string(200'000, ' ') + numbered_lines(50));
  const JsonLines changing({path});
  write_text(path, numbered_lines(101));
  CHECK_THROWS_WITH(changing.at(3), ContainsSubstring("not the one that was looked through") && ContainsSubstring("x.jsonl"));
}

TEST_CASE("the text of a line is found by its key, or the line is named") {
  const TemporaryFolder folder;
  write_text(folder.path() / "x", "\n{\"text\": \"\\u00e4\\n\", \"n\": 1}\n{\"text\": 1}\n[1]\n{\"text\"\n");
  const JsonLines lines({folder.path() / "x"});
  CHECK(text_of(lines.at(0), "text") == "\xc3\xa4\n");
  CHECK_THROWS_WITH(text_of(lines.at(0), "body"), ContainsSubstring("line 2: there is no \"body\""));
  CHECK_THROWS_WITH(text_of(lines.at(1), "text"), ContainsSubstring("line 3: \"text\" is no text"));
  CHECK_THROWS_WITH(text_of(lines.at(2), "text"), ContainsSubstring("line 4: this is no JSON object"));
  CHECK_THROWS_WITH(text_of(lines.at(3), "text"), ContainsSubstring("line 5") && ContainsSubstring("byte"));
  const Loader loader(lines, {.batch = {.batch_size = 4}, .workers = 2});
  CHECK(loader.load(0).items.size() == 4);
  CHECK(loader.content() == content_of(lines));
}
