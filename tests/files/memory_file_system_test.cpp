// All readers can read from a file system that the test adds: one in memory, for locations such as "memory:/x".

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "checkpoint/layouts.hpp"
#include "checkpoint/simulated_file_system.hpp"
#include "trireme/checkpoint/checkpoint_reader.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/checkpoint/claim.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/documents/conversations.hpp"
#include "trireme/data/images/read_image_folder.hpp"
#include "trireme/data/images/read_image_pairs.hpp"
#include "trireme/data/images/read_images.hpp"
#include "trireme/data/tables/read_csv.hpp"
#include "trireme/data/tables/read_npy.hpp"
#include "trireme/data/text/text.hpp"
#include "trireme/data/text/token_dataset.hpp"
#include "trireme/files/file_content.hpp"
#include "trireme/files/file_system.hpp"
#include "trireme/files/run_status.hpp"
#include "trireme/files/safetensors.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/models/folders/hugging_face.hpp"
#include "trireme/nn/weights/weights.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/tokenizers/chat/chat_template.hpp"
#include "trireme/tokenizers/files/read_tokenizer.hpp"

using namespace trireme;

namespace {

// A folder of its own, which is empty.
Location folder_in_memory(const std::string& name) {
  static const std::shared_ptr<FileSystem> memory = [] {
    auto system = std::make_shared<test::SimulatedFileSystem>();
    add_file_system("memory", system);
    return system;
  }();
  Location folder = "memory:/" + name;
  memory->create_folder(folder);
  return folder;
}

void write_in_memory(const Location& location, std::string_view text) {
  FileReplacement file(location);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

std::string path_in_error(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.fields().path;
  }
  return "nothing was thrown";
}

data::Picture grey_picture(std::uint8_t value) {
  return {.shape = {.height = 4, .width = 4, .channels = 1}, .pixels = std::vector<std::uint8_t>(16, value)};
}

}  // namespace

TEST_CASE("files in memory are written, read, listed and described") {
  const Location folder = folder_in_memory("plain");
  write_in_memory(folder / "b.txt", "before");
  write_in_memory(folder / "b.txt", "text");
  write_in_memory(folder / "a.txt", "");
  CHECK(file_system_of(folder)->names_in(folder) == std::vector<std::string>{"a.txt", "b.txt"});
  CHECK(is_folder(folder));
  CHECK(is_there(folder / "a.txt"));
  CHECK_FALSE(is_there(folder / "c.txt"));
  const auto file = open_file(folder / "b.txt");
  CHECK(file->content() == "text");
  CHECK(std::string_view(reinterpret_cast<const char*>(file->map().get()), file->size()) == "text");
  CHECK(open_file(folder / "a.txt")->map() == nullptr);
  CHECK_THAT(content_at(folder), ContainsSubstring("2 files of 4 bytes"));
  CHECK_THAT(content_at(folder / "b.txt"), ContainsSubstring("4 bytes"));
  write_run_status(folder / "status.json", {.step = 7});
  CHECK(read_run_status(folder / "status.json")->step == 7);
  CHECK(path_in_error([&] { open_file(folder / "c.txt"); }) == "memory:/plain/c.txt");
}

TEST_CASE("tables, texts, tokens and conversations are read from memory") {
  const Location folder = folder_in_memory("data");
  write_in_memory(folder / "table.csv", "x,y\n1,2\n3,4\n");
  CHECK(data::read_csv(folder / "table.csv").size() == 2);
  write_in_memory(folder / "broken.csv", std::string("x\0", 2));
  CHECK(path_in_error([&] { data::read_csv(folder / "broken.csv"); }) == "memory:/data/broken.csv");

  std::string array = "\x93NUMPY\x01";
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  array += std::string(1, '\0') + std::string(1, static_cast<char>(header.size())) + std::string(1, '\0') + header;
  constexpr std::array<float, 2> elements{1.5f, -2.0f};
  array.append(reinterpret_cast<const char*>(elements.data()), sizeof elements);
  write_in_memory(folder / "array.npy", array);
  CHECK(data::read_npy<float>(folder / "array.npy").span()[1] == -2.0f);

  const Location texts = folder_in_memory("texts");
  write_in_memory(texts / "a.txt", "one");
  write_in_memory(texts / "b.txt", "two");
  write_in_memory(texts / ".hidden", "three");
  CHECK(data::read_text(texts) == "one\ntwo");
  CHECK(path_in_error([&] { data::read_text(texts / "c.txt"); }) == "memory:/texts/c.txt");

  constexpr std::array<std::uint16_t, 3> stored{5, 300, 7};
  write_in_memory(folder / "tokens.bin", {reinterpret_cast<const char*>(stored.data()), sizeof stored});
  const auto tokens = data::TokenDataset::map(folder / "tokens.bin", DType::uint16);
  std::vector<std::int32_t> window(2);
  tokens.window(1, window);
  CHECK(window == std::vector<std::int32_t>{300, 7});
  CHECK(tokens.largest() == 300);
  CHECK_THAT(data::content_of(tokens), ContainsSubstring("6 bytes"));

  write_in_memory(texts / "talks.jsonl", R"({"prompt": "1+1?", "completion": "2"})");
  CHECK(data::read_conversations(texts).size() == 1);
}

TEST_CASE("images are read from memory") {
  const Location set = folder_in_memory("cifar");
  std::string records;
  for (const char label : {'\3', '\7'}) records += std::string(1, label) + std::string(3072, 'x');
  write_in_memory(set / "data_batch_1.bin", records);
  const data::Images images = data::read_images(set, Location());
  CHECK(images.training.count() == 2);
  CHECK(images.training.label(1) == 7);
#ifdef TRIREME_TESTS_HAVE_PNG
  const Location folder = folder_in_memory("classes"), masks = folder_in_memory("masks");
  for (const char* name : {"cat", "dog"}) {
    file_system_of(folder)->create_folder(folder / name);
    data::write_png(folder / name / "1.png", grey_picture(9));
  }
  CHECK(data::read_image(folder / "cat" / "1.png").pixels[3] == 9);
  CHECK(data::has_class_folders(folder));
  CHECK(data::read_image_folder(folder, {.height = 4, .width = 4}).class_names == std::vector<std::string>{"cat", "dog"});
  data::write_png(masks / "1_mask.png", grey_picture(1));
  CHECK(data::read_image_pairs(folder / "cat", masks, {.height = 4, .width = 4, .mask_suffix = "_mask"}).names ==
        std::vector<std::string>{"1"});
#endif
}

TEST_CASE("tokenizers are read from memory") {
  const Location folder = folder_in_memory("tokenizer");
  CHECK_FALSE(tokenizers::has_tokenizer(folder));
  write_in_memory(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\n");
  write_in_memory(folder / "tokenizer_config.json", R"({"do_lower_case": true, "chat_template": "unknown"})");
  CHECK(tokenizers::has_tokenizer(folder));
  const tokenizers::Tokenizer tokenizer = tokenizers::read_tokenizer(folder);
  CHECK(tokenizer.encode("Hello") == std::vector<std::int32_t>{2, 5, 3});
  CHECK(tokenizers::ChatTemplate::file_in(folder) == folder / "tokenizer_config.json");
  write_in_memory(folder / "ranks.tiktoken", "aGVsbG8= 0\n");
  CHECK(path_in_error([&] { tokenizers::read_tiktoken(folder / "none.tiktoken"); }) == "memory:/tokenizer/none.tiktoken");
  write_in_memory(folder / "tokenizer.json", "{");
  CHECK(path_in_error([&] { tokenizers::read_tokenizer(folder); }) == "memory:/tokenizer/tokenizer.json");
}

TEST_CASE("folders of transformers and files of weights are written to memory and read from it") {
  const Location from = folder_in_memory("from"), folder = folder_in_memory("gpt");
  write_in_memory(from / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
  write_in_memory(from / "generation_config.json", "{}");
  using Net = models::Gpt<Float32>;
  const models::GptOptions options{.layers = 1, .heads = 2, .width = 8, .block = 4, .vocabulary = 11};
  Net model(options), other(options, {.seed = 5}), third(options);
  model.initialize();
  other.initialize();
  models::save_pretrained(model, folder, {.from = from, .chat_template = "{{ messages }}"});
  CHECK(models::family_of(folder) == models::Family::gpt2);
  CHECK(is_there(folder / "vocab.txt"));
  CHECK(open_file(folder / "generation_config.json")->content() == "{}");
  CHECK(open_file(folder / "chat_template.jinja")->content() == "{{ messages }}");
  CHECK(models::gpt_options(folder).width == 8);
  const auto weights_of = [&](const Net& net, const char* name) {
    nn::save_weights<float>(net.model(), folder / name);
    return content_at(folder / name);
  };
  const std::string wanted = weights_of(model, "model");
  CHECK(weights_of(other, "other") != wanted);
  models::load_pretrained(other, folder);
  CHECK(weights_of(other, "other") == wanted);
  nn::load_weights<float>(third.model(), folder / "model");
  CHECK(weights_of(third, "third") == wanted);
  CHECK(SafetensorsFile(folder / "model").path() == folder / "model");
  CHECK(path_in_error([&] { SafetensorsFile(folder / "none.safetensors"); }) == "memory:/gpt/none.safetensors");
}

TEST_CASE("checkpoints are saved to memory and loaded from it") {
  const Location run = folder_in_memory("runs") / "first";
  testing::run_ranks(2, [&](const Group& world) {
    const checkpoint::Claim claim(world, run);
    test::SampleState sample(world.rank(), world.size(), 1);
    checkpoint::Checkpoints checkpoints(world, {.directory = run, .keep = 2});
    for (std::int64_t step = 1; step <= 3; ++step) {
      sample.fill(static_cast<std::uint64_t>(step));
      checkpoints.save(step, sample.state());
      checkpoints.finish();
    }
    sample.fill(99);
    require(checkpoints.load_newest(sample.state())->step == 3, "the newest is loaded");
    require(sample.difference(3).empty(), "the state is that of step 3");
  });
  CHECK(checkpoint::committed_steps(run) == std::vector<std::int64_t>{2, 3});
  const Location newest = checkpoint::newest_folder(run);
  CHECK(newest == run / "step-000000003");
  CHECK(checkpoint::CheckpointReader(newest).problems().empty());
  CHECK_FALSE(checkpoint::ClaimWatch(run).is_held());
  CHECK(checkpoint::prune(run, 1) == std::vector<std::string>{"step-000000002"});
  CHECK(path_in_error([&] { checkpoint::CheckpointReader(run / "step-000000009"); }) ==
        "memory:/runs/first/step-000000009/manifest.json");
}
