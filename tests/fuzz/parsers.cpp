#include "fuzz/parsers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <utility>

#include "comm/tcp/frame_rules.hpp"
#include "data/documents/raw_documents.hpp"
#include "data/images/decode_picture.hpp"
#include "data/npz_files.hpp"
#include "data/tar_files.hpp"
#include "fuzz/inputs.hpp"
#include "fuzz/model_parsers.hpp"
#include "fuzz/remote_parsers.hpp"
#include "temporary_folder.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/data/documents/token_mixture.hpp"
#include "trireme/data/images/cifar10.hpp"
#include "trireme/data/images/mnist.hpp"
#include "trireme/data/shards/csv_rows.hpp"
#include "trireme/data/shards/json_lines.hpp"
#include "trireme/data/shards/tar_shards.hpp"
#include "trireme/data/shards/token_shards.hpp"
#include "trireme/data/tables/npy_rows.hpp"
#include "trireme/data/tables/read_csv.hpp"
#include "trireme/data/tables/read_npy.hpp"
#include "trireme/data/text/token_dataset.hpp"
#include "trireme/data/text/vocabulary.hpp"
#include "trireme/files/cached_file_system.hpp"
#include "trireme/files/crc32c.hpp"
#include "trireme/files/run_status.hpp"
#include "trireme/files/safetensors.hpp"
#include "trireme/tokenizers/codecs/tokenizer.hpp"

namespace trireme::fuzz {
namespace {

void read_tensors(Bytes bytes) {
  answer([&] {
    const MemoryFile content(bytes);
    const SafetensorsFile file(content.path());
    std::size_t total = 0;
    for (const SafetensorsEntry& entry : file.tensors()) {
      check(file.find(entry.name) == &entry, "a tensor is not found by its name");
      total += file.read_bytes(entry.name).size();
    }
    check(total < bytes.size(), "tensors are larger than their file");
  });
}

std::vector<std::string> safetensors_seeds() {
  const auto file = [](std::string_view header, std::size_t data) {
    const std::uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof length).append(header).append(data, 'x');
  };
  return {file("{}", 0), file(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", 24),
          file(R"({"__metadata__":{"k":"v"},"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},)"
               R"("b":{"dtype":"BF16","shape":[0,9],"data_offsets":[1,1],"x":[1.5,null,{"y":true}]}})",
               1)};
}

void read_token_shard(Bytes bytes) {
  answer([&] {
    const MemoryFile content(bytes);
    const data::TokenShards shards({content.path()});
    std::vector<std::int64_t> lengths(1);
    shards.read_lengths(shards.size() - 1, lengths);
    check(shards.length_of(shards.size() - 1) == lengths[0], "a document has two lengths");
    shards.verify();
    std::int64_t tokens = 0;
    for (std::int64_t document = 0; document < shards.size(); ++document) tokens += std::ssize(shards.at(document));
    check(tokens == shards.num_tokens(), "tokens of documents are lost");
  });
}

std::vector<std::string> token_shard_seeds() {
  const auto shard = [](std::string_view header, std::string_view data) {
    const std::uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof length).append(header).append(data);
  };
  using namespace std::literals;
  constexpr std::string_view ends = "\1\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0"sv;
  return {shard(R"({"__metadata__":{"format":"trireme.tokens","largest_token":"9"},)"
                R"("document_ends":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
                R"("tokens":{"dtype":"U16","shape":[3],"data_offsets":[16,22]}})",
                std::string(ends) + "\1\0\2\0\3\0"s),
          shard(R"({"__metadata__":{"format":"trireme.tokens","digest":"3 tokens, 0123456789abcdef"},)"
                R"("document_ends":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
                R"("document_sources":{"dtype":"I32","shape":[2],"data_offsets":[16,24]},)"
                R"("tokens":{"dtype":"U32","shape":[3],"data_offsets":[24,36]}})",
                std::string(ends) + std::string(20, '\0'))};
}

std::string with_checksum(std::string_view content) {
  const std::uint32_t checksum = crc32c(std::as_bytes(std::span(content)));
  return fmt::format("{{\"crc32c\":{},\"manifest\":{}}}\n", checksum, content);
}

void read_manifest_text(std::string_view text) {
  answer([&] {
    const auto manifest = checkpoint::parse_manifest(text, "manifest.json");
    const std::string again = checkpoint::to_text(manifest);
    check(checkpoint::to_text(checkpoint::parse_manifest(again, "manifest.json")) == again,
          "a manifest is not read as written");
  });
}

// As it is, and as the content of a manifest whose checksum fits.
void read_manifest(Bytes bytes) {
  read_manifest_text(text_of(bytes));
  read_manifest_text(with_checksum(text_of(bytes)));
}

std::vector<std::string> manifest_seeds() {
  checkpoint::Manifest manifest{.step = 7, .chunk_bytes = 64, .configuration = {{"seed", "1"}, {"text", "\"\\\n\u00e9"}}};
  manifest.values = {{"a", std::int64_t{-3}}, {"b", 0.25}, {"c", std::string("text")}};
  manifest.files = {{.name = "shard-0", .bytes = 400, .header_bytes = 100, .header_checksum = 5},
                    {.name = "shard-1", .bytes = 300, .header_bytes = 100, .header_checksum = 6}};
  manifest.tensors.push_back(
      {.name = "empty", .dtype = DType::uint8, .shape = {0, 3}, .optional = true, .digest = 0, .parts = {}});
  manifest.tensors.push_back({.name = "columns",
                              .dtype = DType::float32,
                              .shape = {4, 6},
                              .digest = 0x123456789abcdef0,
                              .parts = {{.file = 0, .offset = 100, .runs = {{0, 2, 6, 4}}, .checksums = {1}},
                                        {.file = 1, .offset = 100, .runs = {{2, 4, 6, 4}}, .checksums = {2}}}});
  std::swap(manifest.tensors[0], manifest.tensors[1]);
  std::vector<std::string> seeds;
  for (const bool imported : {false, true}) {
    if (imported) manifest.imported = {.source = "gpt2.safetensors", .prefix = ""};
    const std::string text = checkpoint::to_text(manifest);
    const std::size_t begin = text.find("\"manifest\":") + 11;
    seeds.push_back(text.substr(begin, text.size() - 2 - begin));
    seeds.push_back(text);
  }
  return seeds;
}

void read_status(Bytes bytes) {
  answer([&] {
    const MemoryFile content(bytes);
    const auto status = read_run_status(content.path());
    check(status.has_value(), "the status of a file that is there");
  });
}

std::vector<std::string> status_seeds() {
  return {R"({"checkpoint":null,"state":"training","step":1})", R"({"checkpoint":12,"state":"stopped","step":12})"};
}

void read_words(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  const auto tokenizer = tokenizers::Tokenizer::bytes();
  check(tokenizer.decode(tokenizer.encode(text)) == text, "bytes are not decoded as encoded");
  const auto characters = data::Vocabulary::characters(text);
  check(characters.decode(characters.encode(text)) == text, "characters are not decoded as encoded");
  check(data::Vocabulary::from_text(characters.to_text()) == characters, "a vocabulary is not read as written");
  answer([&] {
    const auto words = data::Vocabulary::words(text, 8);
    const auto tokens = words.encode(text);
    for (const std::int32_t token : tokens) check(token >= 0 && token < words.size(), "a token is outside the vocabulary");
    words.decode(tokens);
    check(data::Vocabulary::from_text(words.to_text()) == words, "a vocabulary is not read as written");
  });
  answer([&] {
    const auto written = data::Vocabulary::from_text(text);
    check(written.to_text() == text, "a vocabulary is not written as read");
    answer([&] { written.decode(written.encode("the fox\n")); });
  });
}

std::vector<std::string> text_seeds() {
  return {"the quick brown fox\njumps over\tthe lazy dog\n\n", "a", "words <unk> the <eos> %C3%A9", "characters %0A t"};
}

// The first byte chooses the dtype.
void read_tokens(Bytes bytes) {
  if (bytes.empty()) return;
  constexpr std::array dtypes{DType::uint8, DType::uint16, DType::uint32, DType::float32};
  answer([&] {
    const MemoryFile content(bytes.subspan(1));
    const auto tokens = data::TokenDataset::map(content.path(), dtypes[bytes[0] % dtypes.size()]);
    std::vector<std::int32_t> window(static_cast<std::size_t>(tokens.size()));
    tokens.window(0, window);
  });
}

std::vector<std::string> token_seeds() {
  return {std::string("\0abcd", 5), std::string("\1abcd", 5), std::string("\2abc\0", 5)};
}

// Two bytes with the length of the file of labels, that file, and the one of images.
void read_idx(Bytes bytes) {
  if (bytes.size() < 2) return;
  const std::size_t length = std::min<std::size_t>(bytes[0] + 256 * bytes[1], bytes.size() - 2);
  answer([&] {
    const MemoryFile labels(bytes.subspan(2, length));
    const MemoryFile images(bytes.subspan(2 + length));
    const auto dataset = data::read_mnist(images.path(), labels.path());
    for (std::int64_t index = 0; index < dataset.count(); ++index) {
      check(dataset.image(index).size() == static_cast<std::size_t>(dataset.shape().numel()), "an image has another size");
      check(dataset.label(index) >= 0 && dataset.label(index) < dataset.classes(), "a label is no class");
    }
  });
}

std::vector<std::string> idx_seeds() {
  const std::string labels("\0\0\10\1\0\0\0\2\3\11", 10);
  const std::string images("\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\1abcd", 20);
  // An empty file, packed.
  const std::string packed("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00", 20);
  return {std::string("\12\0", 2) + labels + images, std::string("\24\0", 2) + packed + images};
}

void read_records(Bytes bytes) {
  answer([&] {
    const MemoryFile content(bytes);
    const auto dataset = data::read_cifar10({content.path()});
    check(dataset.count() == static_cast<std::int64_t>(bytes.size() / 3073), "another number of images");
  });
}

std::vector<std::string> record_seeds() { return {std::string(1, '\3') + std::string(3072, 'x')}; }

// The first byte chooses the options.
void read_table(Bytes bytes) {
  if (bytes.empty()) return;
  const int choice = bytes[0] % 12;
  const data::CsvOptions options{.label = choice % 4 == 0 ? "k" : "",
                                 .separator = choice % 3 == 0 ? ';' : ',',
                                 .decimal = choice % 3 == 0 ? ',' : '.',
                                 .header = choice % 2 == 0,
                                 .missing = data::MissingValues{static_cast<std::uint8_t>(choice / 4)}};
  answer([&] {
    const MemoryFile content(bytes.subspan(1));
    const data::Table table = data::read_csv(content.path(), options);
    check(table.size() > 0 && table.size() <= static_cast<std::int64_t>(bytes.size()), "more rows than bytes");
    check(std::ssize(table.features()) == table.size() * table.num_features(), "features of other rows");
    check(options.label.empty() || std::ssize(table.labels()) == table.size(), "labels of other rows");
    const data::CsvRows rows({content.path()}, {.csv = options, .workers = 1});
    check(rows.size() == table.size(), "other rows where they stay in their file");
    for (std::int64_t index = 0; index < rows.size(); ++index) {
      const Tensor<float> found = rows.at(index).x, expected = table.collate({&index, 1}, 0).x;
      check(std::equal(found.data(), found.data() + found.numel(), expected.data(), expected.data() + expected.numel()),
            "a row differs");
    }
  });
}

std::vector<std::string> table_seeds() {
  std::vector<std::string> seeds;
  for (char choice = 0; choice < 12; ++choice) {
    std::string rows = "a,k,\"b\"\r\n1.5,oak,\"2\"\n-3e1,\"e\"\"l\nm\",+.5\n\n0,1,NA\n";
    if (choice % 3 == 0) std::ranges::replace(rows, ',', ';');
    seeds.push_back(std::string(1, choice) + rows);
  }
  return seeds;
}

const data::CsvRowsOptions options_of_rows{.csv = {.label = "k", .missing = data::MissingValues::filled_by_mean}, .workers = 1};
constexpr std::string_view rows_of_csv =
    "a,k,b\n1.5,oak,2\n-3e1,\"e\"\"l\nm\",+.5\n\n0,oak,NA\n4,5,6\n,oak,2\n7,oak,2\n8,oak,2\n9,elm,1\n9,oak,\n";

// The index of rows that stay.
void read_row_index(Bytes bytes) {
  static const tests::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "x.csv";
  if (!std::filesystem::exists(path)) tests::write_text(path, std::string(rows_of_csv));
  const MemoryFile content(bytes);
  content.link_to(path.native() + ".index");
  set_log_level(Severity::error);  // an index that is not used is worth a line
  answer([&] {
    const data::CsvRows rows({path}, options_of_rows);
    for (std::int64_t index = 0; index < std::min<std::int64_t>(rows.size(), 100); ++index) {
      answer([&] {
        const data::Rows row = rows.at(index);
        check(row.labels.data()[0] >= 0 && row.labels.data()[0] < rows.num_classes(), "a label is no class");
      });
    }
  });
}

std::vector<std::string> row_index_seeds() {
  const tests::TemporaryFolder folder;
  tests::write_text(folder.path() / "x.csv", std::string(rows_of_csv));
  data::CsvRows({folder.path() / "x.csv"}, options_of_rows).write_index();
  return {open_file(folder.path() / "x.csv.index")->content()};
}

void read_picture(Bytes bytes) {
  answer([&] {
    for (const bool numbers : {false, true}) {
      const data::Picture picture = data::decode_picture(bytes, "picture", numbers);
      check(std::ssize(picture.pixels) == picture.shape.numel(), "a picture has other extents than pixels");
      check(picture.shape.channels == 1 || picture.shape.channels == 3, "a picture has alpha");
    }
  });
  answer([&] {
    const data::Picture picture = data::decode_part(bytes, "picture", [](const data::ImageShape& stored) -> data::JpegPart {
      return {.reduction = 2, .box = {.top = stored.height / 4, .height = 1, .width = (stored.width + 1) / 2}};
    });
    check(std::ssize(picture.pixels) == picture.shape.numel(), "a picture has other extents than pixels");
  });
}

void read_array(Bytes bytes) {
  const auto read = [&]<typename T>(T) {
    answer([&] {
      const MemoryFile content(bytes);
      const Tensor<T> array = data::read_npy<T>(content.path());
      check(array.numel() < static_cast<std::int64_t>(bytes.size()), "an array has more elements than bytes");
    });
  };
  read(float());
  read(std::int32_t());
}

void read_arrays(Bytes bytes) {
  answer([&] {
    const MemoryFile content(bytes);
    const data::NpyRows<float> rows(content.path(), "x");
    check(rows.size() * rows.row_shape().numel() < std::ssize(bytes), "an array has more elements than bytes");
    for (std::int64_t row = 0; row < std::min<std::int64_t>(rows.size(), 100); ++row) answer([&] { rows.at(row); });
  });
}

std::vector<std::string> arrays_seeds() {
  const std::string x = tests::npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", std::string(24, 'x'));
  return {tests::npz_file({{"x", x}}), tests::npz_file({{"y", ""}, {"x", x}}, true)};
}

std::vector<std::string> array_seeds() {
  const auto file = [](std::string_view header, std::size_t data) {
    return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) + '\0' + std::string(header) +
           std::string(data, 'x');
  };
  return {file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24),
          file("{'descr': '>i8', 'fortran_order': True, 'shape': (3, 1, 2), }\n", 48),
          file("{'descr': '|b1', 'fortran_order': False, 'shape': (), }\n", 1),
          file("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 5), }\n", 0)};
}

void read_samples(const data::TarShards& shards, std::size_t bytes) {
  std::size_t total = 0;
  for (std::int64_t index = 0; index < shards.size(); ++index) {
    answer([&] {
      const data::TarSample sample = shards.at(index);
      check(!sample.key.empty() && !sample.fields.empty(), "a sample has nothing");
      for (const data::TarField& field : sample.fields) {
        total += field.bytes.size() + 512;
        check(std::ranges::count(field.text(), 'x') <= std::ssize(field.bytes), "bytes that are not there");
      }
    });
  }
  check(total <= bytes, "samples are larger than their archive");
}

void read_archive(Bytes bytes) {
  answer([&] {
    const MemoryFile content(bytes);
    read_samples(data::TarShards({content.path()}), bytes.size());
  });
}

std::string archive_of_two() {
  const auto file = [](std::string_view name, std::uint64_t size, char type = '0') {
    return tests::TarHeader{.name = std::string(name), .size = size, .type = type}.bytes() +
           tests::padded(std::string(size, 'x'));
  };
  return file("a/1.jpg", 3) + file("a/1.cls", 0) + file("b.txt", 600) + tests::tar_mark;
}

std::vector<std::string> archive_seeds() {
  const std::string records = tests::pax_record("path", "c.d") + tests::pax_record("size", "3");
  return {archive_of_two(),
          tests::tar_member({.name = "x", .type = 'x'}, records) + tests::tar_file("e.f", "xyz") + tests::tar_mark,
          tests::tar_member({.name = "long", .type = 'L'}, "g.h") + tests::tar_file("e.f", "xyz") + tests::tar_mark};
}

// The index of an archive that stays.
void read_archive_index(Bytes bytes) {
  static const tests::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "x.tar";
  const std::string archive = archive_of_two();
  if (!std::filesystem::exists(path)) tests::write_text(path, archive);
  const MemoryFile content(bytes);
  content.link_to(path.native() + ".index");
  set_log_level(Severity::error);  // an index that is not used is worth a line
  answer([&] { read_samples(data::TarShards({path}), archive.size()); });
}

std::vector<std::string> archive_index_seeds() {
  const tests::TemporaryFolder folder;
  tests::write_text(folder.path() / "x.tar", archive_of_two());
  data::TarShards({folder.path() / "x.tar"}).write_index();
  return {open_file(folder.path() / "x.tar.index")->content()};
}

std::vector<std::string> line_seeds() {
  std::string lines = "\xef\xbb\xbf{\"text\": \"a\\n\"}\r\n\n";
  for (int line = 0; line < 20; ++line) lines += fmt::format("{{\"text\": \"{}\"}}\n", line);
  return {lines, "\n \n\r\n", "{\"text\": [1]}\n{"};
}

// Of the same file as documents, and how many bytes they have.
std::size_t read_same_lines(const data::JsonLines& lines) {
  data::RawDocuments documents(lines.files(), {}, {}, {});
  std::size_t total = 0;
  for (std::int64_t index = 0; index < lines.size(); ++index) {
    const data::TextLine line = lines.at(index);
    const auto document = documents.next();
    check(document && document->text == line.text && std::cmp_equal(document->place.byte, line.byte), "lines differ");
    check(!line.text.empty() && line.text.find('\n') == line.text.npos, "a line is none");
    total += line.text.size();
    answer([&] { data::text_of(line, "text"); });
  }
  check(!documents.next(), "there are more documents than lines");
  return total;
}

void read_lines(Bytes bytes) {
  static const tests::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "x.jsonl";
  const MemoryFile content(bytes);
  content.link_to(path);
  answer([&] { check(read_same_lines(data::JsonLines({path})) <= bytes.size(), "lines are longer than their file"); });
}

// The index of lines that stay.
void read_line_index(Bytes bytes) {
  static const tests::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "x.jsonl";
  if (!std::filesystem::exists(path)) tests::write_text(path, line_seeds().front());
  const MemoryFile content(bytes);
  content.link_to(path.native() + ".index");
  set_log_level(Severity::error);  // an index that is not used is worth a line
  answer([&] {
    const data::JsonLines lines({path});
    for (std::int64_t index = 0; index < std::min<std::int64_t>(lines.size(), 100); ++index) {
      answer([&] { check(!lines.at(index).text.empty(), "a line is none"); });
    }
  });
}

std::vector<std::string> line_index_seeds() {
  const tests::TemporaryFolder folder;
  tests::write_text(folder.path() / "x.jsonl", line_seeds().front());
  data::JsonLines({folder.path() / "x.jsonl"}).write_index();
  return {open_file(folder.path() / "x.jsonl.index")->content()};
}

// Of shards in the same folder, by name.
void read_mixture(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  if (text.find('/') != text.npos || text.find("..") != text.npos) return;
  static const tests::TemporaryFolder folder;
  for (const char* name : {"a", "b"}) {
    const std::filesystem::path shard = folder.path() / name;
    if (!std::filesystem::exists(shard)) tests::write_text(shard, token_shard_seeds().front());
  }
  const MemoryFile content(bytes);
  content.link_to(folder.path() / "mixture.json");
  answer([&] {
    const auto mixture = data::open_token_mixture((folder.path() / "mixture.json").string(), {.length = 4});
    check(!mixture.weights.empty() && std::ssize(mixture.names) == std::ssize(mixture.rows.parts()),
          "parts without weights or names");
    for (const auto& weights : mixture.weights) {
      check(std::ssize(weights.weights) == std::ssize(mixture.rows.parts()), "a part has no weight");
    }
  });
}

std::vector<std::string> mixture_seeds() {
  return {R"({"parts":[{"name":"one","data":"a","weight":0.25},{"data":"b","weight":3}],"weights_from_step":{"7":[1,0]}})",
          R"({"parts":[{"data":"b","weight":1e-3}]})"};
}

std::string from_hexadecimal(std::string_view digits) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < digits.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(at, 2)), nullptr, 16));
  }
  return bytes;
}

// Of 16 bits; a palette with transparency; a JPEG image in colours; a progressive grey one.
std::vector<std::string> picture_seeds() {
  return {from_hexadecimal(
              "89504e470d0a1a0a0000000d4948445200000002000000021002000000ad4446300000001849444154789c636060646266616563e7e0e4"
              "e26640e6000005b00085c518f9050000000049454e44ae426082"),
          from_hexadecimal(
              "89504e470d0a1a0a0000000d494844520000000500000003020300000026582d6b0000000c504c5445000102030405060708090a0bdc4c"
              "389c0000000274524e53ff00e5b7304a000000114944415478da639066608ee7627115010003a000e5a410e1150000000049454e44ae42"
              "6082"),
          from_hexadecimal(
              "ffd8ffe000104a46494600010100000100010000ffdb0043001b12141714111b1716171e1c1b2028422b28252528513a3d304260556564"
              "5f555d5b6a7899816a7190735b5d85b586909ea3abadab6780bcc9baa6c799a8aba4ffdb0043011c1e1e2823284e2b2b4ea46e5d6ea4a4"
              "a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4ffc00011080005"
              "000903012200021101031101ffc400160001010100000000000000000000000000000204ffc4001c100002000700000000000000000000"
              "000000030104051521d1f0ffc4001501010100000000000000000000000000000203ffc4001a1100020203000000000000000000000000"
              "00020331041112ffda000c03010002110311003f00997a7a71a355bd3d00093c8dbb063cafc59fffd9"),
          from_hexadecimal(
              "ffd8ffe000104a46494600010100000100010000ffdb0043001b12141714111b1716171e1c1b2028422b28252528513a3d304260556564"
              "5f555d5b6a7899816a7190735b5d85b586909ea3abadab6780bcc9baa6c799a8aba4ffc2000b080005000901011100ffc4001500010100"
              "000000000000000000000000000103ffda00080101000000012bffc4001810000203000000000000000000000000000001020313ffda00"
              "080101000105028d68cd1fffc40014100100000000000000000000000000000010ffda0008010100063f023fffc4001410010000000000"
              "0000000000000000000010ffda0008010100013f210bffda00080101000000103fffc40018100002030000000000000000000000000000"
              "1121d1f0ffda0008010100013f10814611ffd9")};
}

// As the hub takes what a rank of three sends: members, calls and messages.
void read_frames(Bytes bytes) {
  comm::FrameParser parser;
  comm::MembersOfGroups groups{{0, {0, 1, 2}}};
  std::size_t total = 0;
  const auto take = [&](const comm::Frame& frame) {
    total += frame.data.size();
    if (!comm::fault_of(frame, 1, 3, groups).empty()) return;
    if (frame.header.kind == comm::FrameKind::members) groups[frame.header.group] = comm::members_in(frame);
    if (frame.header.kind == comm::FrameKind::call) {
      check(!comm::describe(frame.header.call).empty(), "a call has no text");
      check(groups.at(frame.header.group).at(static_cast<std::size_t>(frame.header.rank)) == 1, "a call of another rank");
    }
    if (frame.header.kind == comm::FrameKind::letter) check(frame.header.to >= 0 && frame.header.to < 3, "a message to nobody");
  };
  const auto data = std::as_bytes(bytes);
  for (std::size_t at = 0; at < data.size(); at += 100) {
    if (!parser.add(data.subspan(at, std::min<std::size_t>(100, data.size() - at)))) break;
    while (const auto frame = parser.next()) take(*frame);
  }
  check(total <= bytes.size(), "frames hold more than has come");
}

std::vector<std::string> frame_seeds() {
  const auto text_of = [](comm::FrameHeader header, std::string_view data) {
    const auto frame = comm::write_frame(header, std::as_bytes(std::span(data)));
    return std::string(reinterpret_cast<const char*>(frame.data()), frame.size());
  };
  const std::string members = text_of({.kind = comm::FrameKind::members, .group = 7}, std::string_view("\1\0\0\0\2\0\0\0", 8));
  comm::FrameHeader call{.kind = comm::FrameKind::call, .rank = 0, .work = CallKind::all_reduce, .group = 7};
  call.call = comm::write_call({.kind = CallKind::all_reduce, .dtype = DType::float32, .count = 2, .name = "loss"}, 1);
  comm::FrameHeader letter{.kind = comm::FrameKind::letter, .rank = 1, .size = 2, .to = 2};
  letter.call = comm::write_call({.kind = CallKind::send, .dtype = DType::uint8, .count = 3}, 0);
  return {members + text_of(call, "12345678"), text_of(letter, "abc"),
          text_of({.kind = comm::FrameKind::failure, .rank = 1}, "boom") + text_of({.kind = comm::FrameKind::farewell}, "")};
}

// One file far away.
class FarFileSystem final : public FileSystem {
 public:
  static constexpr std::string_view text = "the bytes of a file that a cache keeps";

  explicit FarFileSystem(bool is_gone) : is_gone_(is_gone) {}

  std::unique_ptr<InputFile> open(const Location&) const override { return std::make_unique<Far>(is_gone_); }
  std::unique_ptr<OutputFile> create(const Location&) override { return nullptr; }
  void create_folder(const Location&) override {}
  void rename(const Location&, const Location&) override {}
  void sync_folder(const Location&) override {}
  void remove_all(const Location&) override {}
  FileKind kind_of(const Location&) const override { return FileKind::file; }
  std::vector<FolderEntry> entries_of(const Location&) const override { return {}; }

 private:
  struct Far final : InputFile {
    explicit Far(bool gone) : is_gone(gone) {}
    std::uint64_t size() const override { return text.size(); }
    std::string version() const override { return "1"; }
    void read_at(std::span<std::byte> into, std::uint64_t offset) const override {
      if (is_gone) throw Error({.code = ErrorCode::io, .message = "it is gone"});
      std::memcpy(into.data(), text.data() + offset, into.size());
    }
    bool is_gone;
  };

  bool is_gone_;
};

std::string far_content(const std::filesystem::path& folder, bool is_gone = false) {
  return cached_file_system(std::make_shared<FarFileSystem>(is_gone), {.folder = folder})->open("far:/x")->content();
}

std::filesystem::path kept_below(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".cached") return entry.path();
  }
  throw std::logic_error("nothing is kept");
}

// What a cache finds in its folder. The file that it would fetch again is gone.
void read_cached_file(Bytes bytes) {
  static const tests::TemporaryFolder folder;
  static const std::filesystem::path kept = [] {
    far_content(folder.path());
    return kept_below(folder.path());
  }();
  const MemoryFile content(bytes);
  content.link_to(kept);
  answer([&] {
    check(far_content(folder.path(), true) == FarFileSystem::text, "a damaged file is taken for the one that was kept");
  });
}

std::vector<std::string> cached_file_seeds() {
  const tests::TemporaryFolder folder;
  far_content(folder.path());
  return {open_file(kept_below(folder.path()))->content()};
}

constexpr std::array parsers_of_data{Parser{"safetensors", read_tensors, safetensors_seeds},
                                     Parser{"token_shard", read_token_shard, token_shard_seeds},
                                     Parser{"manifest", read_manifest, manifest_seeds},
                                     Parser{"run_status", read_status, status_seeds},
                                     Parser{"vocabulary", read_words, text_seeds},
                                     Parser{"tokens", read_tokens, token_seeds},
                                     Parser{"idx", read_idx, idx_seeds},
                                     Parser{"cifar10", read_records, record_seeds},
                                     Parser{"table", read_table, table_seeds},
                                     Parser{"row_index", read_row_index, row_index_seeds},
                                     Parser{"picture", read_picture, picture_seeds},
                                     Parser{"array", read_array, array_seeds},
                                     Parser{"arrays", read_arrays, arrays_seeds},
                                     Parser{"archive", read_archive, archive_seeds},
                                     Parser{"archive_index", read_archive_index, archive_index_seeds},
                                     Parser{"lines", read_lines, line_seeds},
                                     Parser{"line_index", read_line_index, line_index_seeds},
                                     Parser{"mixture", read_mixture, mixture_seeds},
                                     Parser{"cached_file", read_cached_file, cached_file_seeds},
                                     Parser{"frames", read_frames, frame_seeds}};

}  // namespace

std::vector<Parser> parsers() {
  std::vector<Parser> all(parsers_of_data.begin(), parsers_of_data.end());
  all.insert(all.end(), model_parsers().begin(), model_parsers().end());
  all.insert(all.end(), remote_parsers().begin(), remote_parsers().end());
  return all;
}

}  // namespace trireme::fuzz
