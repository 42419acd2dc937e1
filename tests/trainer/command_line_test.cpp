#include "trireme/trainer/command_line.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <locale>
#include <string>
#include <variant>
#include <vector>

#include "catch.hpp"
#include "trainer/option_table.hpp"
#include "trireme/core/error.hpp"
#include "trireme/parallel/parallel_options.hpp"

using namespace trireme;
using trainer::CommandLine;
using trainer::Options;

namespace {

struct Told {
  Options options;
  BackendKind backend = BackendKind::mpi;
  LaunchOptions launch = {};
  std::int64_t width = 128;
  bool bias = true;
  std::string kind = "relu";
  double dropout = 0.1;
  std::optional<double> beta1 = {};
  std::string text = {};
  std::vector<std::pair<std::string, std::string>> own = {};
  std::vector<std::string> usual = {};
};

Told parse(const std::vector<std::string>& words, const Options& defaults = {}) {
  Told told{.options = defaults};
  CommandLine line("A program of the tests");
  line.add("width", told.width, "units of the hidden layer");
  line.add("bias", told.bias, "whether layers have a bias");
  line.add("kind", told.kind, {"relu", "gelu"}, "between layers");
  line.add("dropout", told.dropout, "of the hidden layer");
  line.add("beta1", told.beta1, "of the optimizer");
  line.add_run(told.options);
  line.add_launch(told.backend, told.launch);
  std::vector<const char*> argv{"/usr/bin/program"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  told.text = line.parse(static_cast<int>(argv.size()), argv.data());
  for (const auto& setting : line.settings()) {
    told.own.emplace_back(setting.name, setting.value);
    told.usual.push_back(setting.usual);
  }
  return told;
}

}  // namespace

TEST_CASE("what is not given stays as the program has it") {
  const Options defaults{.until = Epochs{20},
                         .batch_size = 7,
                         .clip_norm = 0.5,
                         .clip_value = 0.1,
                         .checkpoints = {.directory = "run", .keep = 5},
                         .parallel = {.sum = parallel::FixedBits{.micro_batches = 4}, .buckets = {.bytes = 1000}}};
  const Told told = parse({}, defaults);
  CHECK(told.options.until == Amount(Epochs{20}));
  CHECK(told.options.batch_size == 7);
  CHECK(told.options.clip_norm == 0.5);
  CHECK(told.options.clip_value == 0.1);
  CHECK(parse({"--clip", "2", "--clip-value", "0.25"}).options.clip_value == 0.25);
  CHECK(told.options.checkpoints.directory == "run");
  CHECK(told.options.checkpoints.keep == 5);
  CHECK(std::get<parallel::FixedBits>(told.options.parallel.sum).micro_batches == 4);
  CHECK(told.options.parallel.buckets.bytes == 1000);
  CHECK(told.width == 128);
  CHECK(told.text.empty());
}

TEST_CASE("options of a run") {
  CHECK(parse({"--until", "90s"}).options.until == Amount(Seconds{90}));
  CHECK(parse({"--steps", "10"}).options.until == Amount(Steps{10}));
  CHECK(parse({"--epochs", "0.01"}).options.until == Amount(Epochs{0.01}));
  CHECK(parse({"--checkpoint-interval", "10min"}).options.checkpoint_every == Amount(Seconds{600}));
  CHECK(parse({"--checkpoint-interval=100"}).options.checkpoint_every == Amount(Steps{100}));
  const Told grows = parse({"--batch-size-from-step", "64@1000,128@5000", "--scale-learning-rate", "sqrt"});
  CHECK(grows.options.batch_size_from_step == data::BatchSizes{{1000, 64}, {5000, 128}});
  CHECK(grows.options.scale_learning_rate == trainer::RateScaling::square_root);
  const Told told = parse({"--tensor-parallel", "2", "--pipeline_parallel", "3", "--sequence-parallel", "--non-finite", "skip",
                           "--optimizer-sharding", "on", "--backend", "thread", "--ranks", "6"});
  CHECK(told.options.mesh.tensor == 2);
  CHECK(told.options.mesh.pipeline == 3);
  CHECK(told.options.sequence_parallel);
  CHECK(told.options.non_finite == optim::NonFinitePolicy::skip);
  CHECK(told.options.parallel.sharding == parallel::Sharding::optimizer);
  CHECK(told.backend == BackendKind::thread);
  CHECK(told.launch.ranks == 6);
  CHECK(std::get<parallel::FixedBits>(parse({"--fixed-bits", "8"}).options.parallel.sum).micro_batches == 8);
  CHECK(std::get<parallel::Plain>(parse({"--bucket-mb", "auto"}).options.parallel.sum).tuning.on);
  CHECK(parse({"--bucket-mb", "0.5"}).options.parallel.buckets.bytes == 1 << 19);
  const Told compressed = parse({"--compress", "int8", "--compress-start", "5", "--compress-when", "always"});
  const auto& compression = std::get<parallel::Hooked>(compressed.options.parallel.sum).compression;
  CHECK(compression.hook()->str() == "int8");
  CHECK(compression.hook() != compression.hook());
  CHECK(compression.start == 5);
  CHECK(!compression.only_if_faster);
}

TEST_CASE("a value out of an option's bounds is told with its name and the line of the file") {
  const auto path = std::filesystem::temp_directory_path() / ("bounds_test." + std::to_string(getpid()) + ".toml");
  for (const auto& [name, value, text] :
       {std::array{"clip", "-1", "clip_norm is 0 or more, not -1"}, std::array{"clip-value", "-0.5", "clip_value is 0 or more"},
        std::array{"batch-size", "0", "batch_size lies in [1, "},
        std::array{"batch-size-from-step", "64@0", "and 64@0 is none of them"},
        std::array{"batch-size-from-step", "64@5,64@5", "and 64@5 is none of them"},
        std::array{"batch-size-from-step", "64", "64 is no SIZE@STEP"},
        std::array{"micro-batch-size", "33", "lies in [0, batch_size]"}, std::array{"warmup", "-1", "0 or more steps"},
        std::array{"min-learning-rate-ratio", "1.5", "lies in [0, 1]"}, std::array{"learning-rate", "0", "above 0"},
        std::array{"max-skipped", "-1", "max_skipped is 0 or more"},
        std::array{"fixed-bits", "-2", "--fixed-bits is 0 or more"},
        std::array{"compress-start", "-1", "--compress-start lies"}}) {
    INFO(name);
    const std::string option = std::string("--") + name;
    CHECK_THROWS_WITH(parse({option, value}), ContainsSubstring(text) && ContainsSubstring("name " + option));
    std::ofstream(path) << "seed = 3\n" << name << " = " << value << "\n";
    CHECK_THROWS_WITH(parse({"--config", path.string()}), ContainsSubstring(text) && ContainsSubstring("line 2"));
  }
  std::filesystem::remove(path);
}

TEST_CASE("checkpoints keep settings under the names and in the words that they have always had") {
  const Options options{.learning_rate = optim::constant(1),
                        .clip_value = 0.5,
                        .non_finite = optim::NonFinitePolicy::skip,
                        .mesh = {.data = 2},
                        .sequence_parallel = true,
                        .parallel = {.sum = parallel::FixedBits{.micro_batches = 8}}};
  auto settings = trainer::settings_of(options);
  std::ranges::sort(settings, {}, &Setting::name);
  CHECK(settings == optim::Settings{{"base_learning_rate", "the optimizer's"},
                                    {"batch_size", "32"},
                                    {"batch_size_from_step", ""},
                                    {"chunks", "1"},
                                    {"clip_norm", "1"},
                                    {"clip_value", "0.5"},
                                    {"data_parallel", "2"},
                                    {"expert_parallel", "1"},
                                    {"fixed_bits", "8"},
                                    {"learning_rate_schedule", "a function of the step"},
                                    {"max_skipped", "10"},
                                    {"micro_batch_size", "0"},
                                    {"minimum_learning_rate_ratio", "0"},
                                    {"non_finite", "skip"},
                                    {"pipeline_parallel", "1"},
                                    {"recompute_layers", "0"},
                                    {"scale_learning_rate", "none"},
                                    {"seed", "1"},
                                    {"sequence_parallel", "on"},
                                    {"tensor_parallel", "1"},
                                    {"until", "1 epoch"},
                                    {"warmup", "0"}});
  for (const auto& [name, differs] : std::vector<std::pair<std::string, trainer::Differs>>{
           {"seed", trainer::Differs::refused}, {"until", trainer::Differs::told}, {"fixed_bits", trainer::Differs::allowed}}) {
    CHECK(trainer::rule_of_setting(name).differs == differs);
  }
  CHECK(trainer::rule_of_setting("max_skipped").absent == "10");
  CHECK(!trainer::rule_of_setting("of_a_program").absent);
}

TEST_CASE("layers that are computed again are a number, or all") {
  CHECK(parse({}).options.recompute_layers == 0);
  CHECK(parse({"--recompute-layers", "3"}).options.recompute_layers == 3);
  CHECK(parse({"--recompute-layers", "all"}).options.recompute_layers == all_layers);
  const Options all{.recompute_layers = all_layers};
  const auto settings = trainer::settings_of(all);
  const auto setting = std::ranges::find(settings, "recompute_layers", &Setting::name);
  REQUIRE(setting != settings.end());
  CHECK(setting->value == "all");
  for (const char* wrong : {"-1", "1.5", "many", ""}) {
    CHECK_THROWS_WITH(parse({"--recompute-layers", wrong}),
                      ContainsSubstring("recompute-layers") || ContainsSubstring("recompute_layers"));
  }
}

TEST_CASE("the learning rate is an option of a run, where the program has none of its own") {
  CHECK(parse({"--learning-rate", "0.25"}).options.base_learning_rate == 0.25);
  CHECK(!parse({}).options.base_learning_rate);
  Options options;
  double own = 0.5;
  CommandLine line;
  line.add("learning_rate", own, "of the program");
  line.add_run(options);
  const std::vector<const char*> argv{"program", "--learning_rate", "0.125"};
  line.parse(3, argv.data());
  CHECK(own == 0.125);
  CHECK(!options.base_learning_rate);
}

TEST_CASE("options of the program, in both spellings, from the command line and from a file") {
  const Told told = parse({"--width", "64", "--no-bias", "--kind", "gelu", "--dropout", "0", "--beta1", "0.8"});
  CHECK(told.width == 64);
  CHECK(!told.bias);
  CHECK(told.beta1 == 0.8);
  CHECK(told.own == std::vector<std::pair<std::string, std::string>>{
                        {"width", "64"}, {"bias", "off"}, {"kind", "gelu"}, {"dropout", "0"}, {"beta1", "0.8"}});
  CHECK(told.usual == std::vector<std::string>{"128", "on", "relu", "0.1", "not given"});
  const auto path = std::filesystem::temp_directory_path() / ("command_line_test." + std::to_string(getpid()) + ".toml");
  std::ofstream(path) << "width = 32\nbatch_size = 24\ncheckpoint-interval = \"2h\"\n";
  const Told of_file = parse({"--config", path.string()});
  CHECK(of_file.width == 32);
  CHECK(of_file.options.batch_size == 24);
  CHECK(of_file.options.checkpoint_every == Amount(Seconds{7200}));
  CHECK(parse({"--config", path.string(), "--width", "8"}).width == 8);
  std::ofstream(path) << "widht = 32\n";
  CHECK_THROWS_WITH(parse({"--config", path.string()}), ContainsSubstring("widht"));

  // What --print-config writes repeats the call.
  const Told printed =
      parse({"--print-config", "--width", "9", "--no-bias", "--steps", "77", "--compress", "int8", "--metrics", "run #3.csv"});
  std::ofstream(path) << printed.text;
  const Told again = parse({"--config", path.string()});
  CHECK(again.text.empty());
  CHECK(again.width == 9);
  CHECK(!again.bias);
  CHECK(again.options.until == Amount(Steps{77}));
  CHECK(std::holds_alternative<parallel::Hooked>(again.options.parallel.sum));
  CHECK(again.options.metrics == "run #3.csv");
  CHECK(parse({"--config", path.string(), "--epochs", "3"}).options.until ==
        Amount(Epochs{3}));  // the command line's word counts
  const Told empty = parse({"--config", path.string(), "--metrics=", "--width", "8"});
  CHECK(empty.options.metrics.empty());
  CHECK(empty.width == 8);
  std::filesystem::remove(path);
}

TEST_CASE("a number is read whole, in decimal digits, alike from the command line and from a file") {
  const auto path = std::filesystem::temp_directory_path() / ("numbers_test." + std::to_string(getpid()) + ".toml");
  const auto of_file = [&path](const std::string& text) {
    std::ofstream(path) << "# a comment\n\n" << text << "\n";
    return parse({"--config", path.string()});
  };
  CHECK(parse({"--width", "064"}).width == 64);
  CHECK(of_file("width = 064").width == 64);
  CHECK(parse({"--seed", "010"}).options.seed == 10);
  CHECK(parse({"--steps", "010"}).options.until == Amount(Steps{10}));
  CHECK(parse({"--seed", "18446744073709551615"}).options.seed == ~std::uint64_t{0});
  CHECK(of_file("seed = 18446744073709551615").options.seed == ~std::uint64_t{0});
  CHECK(of_file("width = -3").width == -3);
  CHECK(of_file("dropout = 1e-3 # small").dropout == 1e-3);
  CHECK(of_file("\tdropout=.5\r").dropout == 0.5);
  CHECK(of_file("beta1 = \"0.75\"").beta1 == 0.75);
  const std::vector<std::pair<std::string, std::string>> refused{{"seed", "18446744073709551616"},
                                                                 {"seed", "-1"},
                                                                 {"seed", "1.0"},
                                                                 {"seed", "1e3"},
                                                                 {"width", "9223372036854775808"},
                                                                 {"width", "0x40"},
                                                                 {"width", "1,000"},
                                                                 {"width", "1_000"},
                                                                 {"width", "64 "},
                                                                 {"width", "+64"},
                                                                 {"width", ""},
                                                                 {"width", "true"},
                                                                 {"ranks", "4294967297"},
                                                                 {"threads", "1.5"},
                                                                 {"dropout", "0,001"},
                                                                 {"dropout", "nan"},
                                                                 {"dropout", "inf"},
                                                                 {"dropout", "1e999"},
                                                                 {"dropout", "0x1p-3"},
                                                                 {"dropout", "0.1.2"},
                                                                 {"beta1", "0,9"},
                                                                 {"beta1", "0.9f"},
                                                                 {"steps", "1,000"},
                                                                 {"steps", "0x10"},
                                                                 {"epochs", "0,5"},
                                                                 {"until", "1,5 epochs"},
                                                                 {"bucket-mb", "0,5"},
                                                                 {"compress", "topk:0,1"},
                                                                 {"until", "1e308 d"}};
  for (const auto& [name, text] : refused) {
    INFO(name << " = " << text);
    CHECK_THROWS_WITH(parse({"--" + name + "=" + text}), ContainsSubstring(name == "compress" ? "topk:0,1" : "--" + name));
    const std::string line = name + " = \"" + text + "\"";
    CHECK_THROWS_WITH(of_file(line), ContainsSubstring(name == "compress" ? "topk:0,1" : "--" + name));
  }
  for (const char* line : {"width = 1,000",
                           "width = 0x40",
                           "dropout = 0,001",
                           "seed = -1",
                           "until = 1,000",
                           "kind = tanh",
                           "width = [4, 8]",
                           "width = [4]",
                           "width = ",
                           "width =",
                           "width = 4 8",
                           "width",
                           "widht = 3",
                           "width = \"4",
                           "width = '4' 8",
                           "width = \"\\q\"",
                           "[model]",
                           "bias = 2",
                           "bias = 0,1",
                           "config = \"a.toml\"",
                           "width = 4\nwidth = 8",
                           "batch_size = 4\nbatch-size = 8"}) {
    INFO(line);
    CHECK_THROWS_WITH(of_file(line),
                      ContainsSubstring(path.string()) &&
                          ContainsSubstring(std::string(line).find('\n') == std::string::npos ? "line 3" : "line 4"));
  }
  CHECK_THROWS_WITH(of_file("widht = 3"), ContainsSubstring("did you mean --width?"));
  std::ofstream(path) << "metrics = a,b\ncheckpoint-dir = 'C:\\runs' # here\nbias = off\n";
  const Told texts = parse({"--config", path.string()});
  CHECK(texts.options.metrics == "a,b");
  CHECK(texts.options.checkpoints.directory == "C:\\runs");
  CHECK(!texts.bias);
  const std::string odd = "a \"b\" 'c' #\\\td\n";
  std::ofstream(path) << parse({"--print-config", "--metrics", odd, "--flight-dir", "007"}).text;
  const Told again = parse({"--config", path.string()});
  CHECK(again.options.metrics == odd);
  CHECK(again.launch.flight_directory == "007");
  std::filesystem::remove(path);
}

TEST_CASE("numbers are read and written alike in any locale") {
  struct German : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale(), new German));
  const std::vector<std::string> words{"--dropout", "0.25", "--width", "4096", "--epochs", "0.5"};
  const Told told = parse(words);
  std::vector<std::string> printing = words;
  printing.emplace_back("--print-config");
  const std::string printed = parse(printing).text;
  const std::string help = parse({"--help"}).text;
  std::locale::global(before);
  CHECK(told.dropout == 0.25);
  CHECK(told.width == 4096);
  CHECK(told.options.until == Amount(Epochs{0.5}));
  CHECK_THAT(printed, ContainsSubstring("dropout = 0.25\n") && ContainsSubstring("width = 4096\n"));
  CHECK_THAT(help, ContainsSubstring("0.1"));
}

TEST_CASE("help lists all options with their defaults") {
  const std::string help = parse({"--help"}, {.until = Epochs{20}}).text;
  for (const char* part : {"A program of the tests", "--width", "128", "units of the hidden layer", "--until", "20 epochs",
                           "--tensor-parallel", "Checkpoints and metrics", "--checkpoint-dir", "--ranks"}) {
    INFO(part);
    CHECK(help.find(part) != std::string::npos);
  }
}

TEST_CASE("a wrong command line gets one line that says what is wrong") {
  const auto check = [](const std::vector<std::string>& words, const char* part) {
    INFO(words.back());
    CHECK_THROWS_WITH(parse(words), ContainsSubstring(part));
  };
  check({"--widht", "3"}, "--widht is no option of program; did you mean --width?");
  check({"--width", "three"}, "--width");
  check({"--kind", "tanh"}, "tanh");
  check({"--until", "5 apples"}, "--until");
  check({"--steps", "-3"}, "--steps");
  check({"--steps", "10", "--epochs", "3"}, "excludes");
  check({"--bucket-mb", "big"}, "--bucket-mb big is neither a number of MiB above 0 nor auto");
  check({"--compress", "int8", "--fixed-bits", "4"}, "give one of them");
  check({"--compress", "zip"}, "zip");
  check({"--ranks", "4"}, "mpirun -n 4");
  check({"--fixed-bits", "4", "--micro-batch-size", "2"}, "follows from --fixed-bits");
  check({"--chunks", "2"}, "--pipeline-parallel, which is 1");
  check({"--sequence-parallel"}, "--tensor-parallel, which is 1");
  check({"file.txt"}, "one argument too many");
  check({"--config", "/no/such/file"}, "/no/such/file");
}

TEST_CASE("a program's option whose name is taken, or is none") {
  Options options;
  std::string value;
  for (const char* name : {"seed", "batch_size", "config", "bad name", "", "-x"}) {
    INFO(name);
    CommandLine line;
    const auto add = [&] {
      line.add(name, value, "of the program");
      line.add_run(options);
    };
    CHECK_THROWS_AS(add(), Error);
  }
  CommandLine line;
  line.add("twice", value, "once");
  CHECK_THROWS_WITH(line.add("twice", value, "and again"), ContainsSubstring("--twice is an option of every run"));
  CHECK_THROWS_WITH(line.given("never"), ContainsSubstring("given() names never"));
}

TEST_CASE("what the program has for its gradients stays but for what is given") {
  const Options fixed{.parallel = {.sum = parallel::FixedBits{.micro_batches = 2}}};
  CHECK(std::holds_alternative<parallel::FixedBits>(parse({"--bucket-mb", "10"}, fixed).options.parallel.sum));
  CHECK(parse({"--bucket-mb", "10"}, fixed).options.parallel.buckets.bytes == 10 << 20);
  const Told compressed = parse({"--compress", "int8"}, fixed);
  CHECK(std::holds_alternative<parallel::Hooked>(compressed.options.parallel.sum));
  const Options own{.parallel = {.sum = parallel::Hooked{{.hook = parallel::int8_hook()}}}};
  CHECK(std::holds_alternative<parallel::Plain>(parse({"--compress", "none"}, own).options.parallel.sum));
  CHECK(std::holds_alternative<parallel::Hooked>(parse({"--seed", "3"}, own).options.parallel.sum));
}
