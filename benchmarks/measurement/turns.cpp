#include "measurement/turns.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "trireme/core/error.hpp"

using trireme::Error;
using trireme::ErrorCode;

int take_turns(int rank, const std::string& folder, const std::function<std::optional<double>(const std::string&)>& measure) {
  const std::string path = fmt::format("{}/request.{}", folder, rank);
  std::ifstream requests(path);
  std::ofstream answers;
  if (rank == 0) answers.open(folder + "/answers");
  if (!requests || (rank == 0 && !answers)) {
    throw Error({.code = ErrorCode::io,
                 .message = "cannot open the pipes through which this program is told when it is its turn",
                 .path = path,
                 .hint = "--turns is for benchmarks/report, which makes them"});
  }
  for (std::string name; std::getline(requests, name);) {
    const std::optional<double> value = measure(name);
    if (rank == 0) answers << nlohmann::json{{"value", value ? nlohmann::json(*value) : nlohmann::json()}}.dump() << std::endl;
  }
  return 0;
}

void refuse_turn(const std::string& name) {
  throw Error({.code = ErrorCode::invalid_argument, .message = fmt::format("this program has no measurement \"{}\"", name)});
}
