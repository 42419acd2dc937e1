#include "launched_program.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <sstream>

#include "trireme/core/error.hpp"
#include "trireme/core/exit_code.hpp"

namespace trireme {

int launch_program(CLI::App& app, int argc, char** argv, const std::function<BackendKind()>& backend,
                   const std::function<int(const Group&)>& main) {
  add_version(app);
  std::string text;
  std::optional<std::string> refusal;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& end) {
    std::ostringstream out;
    app.exit(end, out, out);
    text = out.str();
  } catch (const CLI::ParseError& error) {
    refusal = fmt::format("{}; {} --help lists what there is", text_of(error, app), name_of_command(app));
  }
  const bool goes_on = !refusal && text.empty();
  // Ranks wait for another's part as long as it takes; ranks that fail are found at once all the same.
  const LaunchOptions launching{.deadline = std::chrono::hours(24)};
  return launch(goes_on ? backend() : BackendKind::mpi, launching, [&](const Group& world) {
    world.agree([&] { require(!refusal, "{}", *refusal); }, "read the options");
    if (text.empty()) return main(world);
    if (world.rank() == 0) std::fputs(text.c_str(), stdout);
    return static_cast<int>(ExitCode::success);
  });
}

}  // namespace trireme
