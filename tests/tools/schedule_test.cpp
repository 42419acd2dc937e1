#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "catch.hpp"
#include "drawing.hpp"
#include "temporary_folder.hpp"

using namespace trireme::tests;
using namespace trireme::parallel;

namespace {

std::string text_of(const PipelineScheduleOptions& options, const StageSeconds& seconds) {
  const PipelineSchedule schedule = make_pipeline_schedule(options);
  return draw_text(schedule, simulate(schedule, std::vector(static_cast<std::size_t>(schedule.num_stages()), seconds)));
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Exit code, and what was printed to `output`.
int run_tool(const std::string& arguments, const std::filesystem::path& output) {
  const int status = std::system((std::string(TRIREME_SCHEDULE) + " " + arguments + " > " + output.string() + " 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("schedules as text") {
  CHECK(text_of({.name = "1f1b", .num_ranks = 2, .num_micro_batches = 3}, {}) ==
        "rank 0   F0 F1 ......B0    F2 B1    ...B2    \n"
        "rank 1   ...F0 B0    F1 B1    F2 B2    ......\n");
  CHECK(text_of({.name = "zb", .num_ranks = 2, .num_micro_batches = 2}, {}) ==
        "rank 0   F0 F1 ...B0 W0 B1 W1 \n"
        "rank 1   ...F0 B0 F1 B1 W0 W1 \n");
  CHECK(text_of({.name = "interleaved", .num_ranks = 1, .num_chunks = 2, .num_micro_batches = 1}, {1, 0.5, 0.5}) ==
        "rank 0   F0  F0b B0b B0  \n");
}

TEST_CASE("the tool prints a schedule and draws it") {
  const TemporaryFolder folder;
  const auto output = folder.path() / "output";
  const auto picture = folder.path() / "schedule.svg";
  CHECK(run_tool("--pipeline-parallel 4 --micro-batches 8 --schedule zb --svg " + picture.string(), output) == 0);
  const std::string text = read(output);
  CHECK_THAT(text, ContainsSubstring("step            27\n"));
  CHECK_THAT(text, ContainsSubstring("waiting         11.11 %\n"));
  CHECK_THAT(text, ContainsSubstring("activations     4 4 4 4\n"));
  const std::string svg = read(picture);
  CHECK(occurrences(svg, "<title>") == 3 * 4 * 8);
  CHECK_THAT(svg, ContainsSubstring("<title>weight gradients of stage 3, micro-batch 7: "));
}

TEST_CASE("numbers that do not fit and files that can't be written end the tool with a message") {
  const TemporaryFolder folder;
  const auto output = folder.path() / "output";
  CHECK(run_tool("--schedule interleaved --chunks 2 --micro-batches 6", output) == 2);
  CHECK_THAT(read(output), ContainsSubstring("trireme-schedule: ") && ContainsSubstring("4 or 8 would do"));
  CHECK(run_tool("--svg " + (folder.path() / "no" / "file.svg").string(), output) == 2);
  CHECK_THAT(read(output), ContainsSubstring("can't be written"));
}

TEST_CASE("a command line that is wrong ends the tool with one line, and exit code 2") {
  const TemporaryFolder folder;
  const auto output = folder.path() / "output";
  const auto told = [&](const std::string& arguments) {
    CHECK(run_tool(arguments, output) == 2);
    const std::string text = read(output);
    CHECK(occurrences(text, "\n") == 1);
    return text;
  };
  CHECK_THAT(told("--micro-batch 4"),
             ContainsSubstring("--micro-batch is no option of trireme-schedule; did you mean --micro-batches?"));
  CHECK_THAT(told("--shedule=zb"), ContainsSubstring("--shedule is no option of trireme-schedule; did you mean --schedule?"));
  CHECK_THAT(told("--qqqqqqqq"), !ContainsSubstring("did you mean"));
  CHECK_THAT(told("--chunks 0"), ContainsSubstring("--chunks: 0 is not 1 or more"));
  CHECK_THAT(told("--chunks three"), ContainsSubstring("--chunks"));
  CHECK_THAT(told("zb"), ContainsSubstring("zb is one argument too many"));
  CHECK(run_tool("--version", output) == 0);
  CHECK_THAT(read(output), ContainsSubstring("trireme-schedule 0."));
}
