#include "job_environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "openmpi_settings.hpp"

Environment openmpi_settings() {
  Environment settings;
  for (const auto& [name, value] : shipped_openmpi_settings) {
    for (const char* prefix : {"OMPI_MCA_", "PRTE_MCA_"}) {  // of Open MPI 4.1 and 5
      const std::string variable = prefix + std::string(name);
      if (std::getenv(variable.c_str()) == nullptr) settings.emplace_back(variable, value);
    }
  }
  return settings;
}

Environment job_identity() {
  std::random_device random;
  const auto word = [&random] { return fmt::format("{:08x}{:08x}", random(), random()); };
  Environment identity;
  if (std::getenv("TRIREME_JOB_ID") == nullptr) identity.emplace_back("TRIREME_JOB_ID", word());
  if (std::getenv("TRIREME_JOB_SECRET") == nullptr) identity.emplace_back("TRIREME_JOB_SECRET", word() + word());
  return identity;
}

void share_with_ranks(Command& command, Environment& environment) {
  std::vector<std::string> names;
  for (const auto& [name, value] : environment) {
    if (name.starts_with("TRIREME_")) names.push_back(name);
  }
  // mpirun refuses the option -x together with the parameter; a command with -x is one of Open MPI.
  if (std::ranges::find(command, "-x") != command.end()) {
    for (const std::string& name : names) command.insert(command.begin() + 1, {"-x", name});
    return;
  }
  const std::string variable = "OMPI_MCA_mca_base_env_list";
  const char* before = std::getenv(variable.c_str());
  std::string list = before == nullptr ? "" : before;
  for (const std::string& name : names) list += (list.empty() ? "" : ";") + name;
  environment.emplace_back(variable, list);
}
