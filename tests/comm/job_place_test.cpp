#include "comm/launch/job_place.hpp"

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "catch.hpp"
#include "comm/launch/cores.hpp"

using namespace trireme;
using namespace trireme::comm;

namespace {

using Variables = std::map<std::string, std::string>;

Environment environment_of(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

JobPlace find(const Variables& variables, StartUp wanted = StartUp::automatic) {
  return find_job_place(wanted, environment_of(variables));
}

void expect_alone(const Variables& variables) { require_alone(environment_of(variables)); }
void expect_world(int size, const Variables& variables) { require_whole_world(size, environment_of(variables)); }
bool is_first(const Variables& variables) { return is_first_process(environment_of(variables)); }

const Variables torchrun = {{"RANK", "5"},         {"WORLD_SIZE", "8"},     {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"},
                            {"MASTER_ADDR", "n0"}, {"MASTER_PORT", "12345"}};
const Variables slurm = {{"SLURM_PROCID", "3"},
                         {"SLURM_NTASKS", "4"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_JOB_ID", "70007"},
                         {"SLURM_STEP_NODELIST", "gpu[07-08],other"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

}  // namespace

TEST_CASE("a process without any variables is alone") {
  const JobPlace place = find({});
  CHECK(place.start_up == StartUp::single);
  CHECK(place.size == 1);
}

TEST_CASE("torchrun's variables say where the ranks meet") {
  const JobPlace place = find(torchrun);
  CHECK(place.start_up == StartUp::torchrun);
  CHECK(place.rank == 5);
  CHECK(place.size == 8);
  CHECK(place.local_rank == 1);
  CHECK(place.local_size == 4);
  CHECK(place.address == "n0");
  CHECK(place.port == 12345);
  CHECK_THROWS_WITH(find(with(torchrun, {{"WORLD_SIZE", "2000000000"}})), ContainsSubstring("a job has up to 1048576 ranks"));
}

TEST_CASE("the port of torchrun's agent is left to it") {
  CHECK(find(with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}})).port == 12346);
  CHECK(find(with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).port == 12345);
  CHECK(find(with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"MASTER_PORT", "65535"}})).port == 65534);
  CHECK(find(with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TRIREME_PORT", "777"}})).port == 777);
}

TEST_CASE("srun's variables name the first machine of the job") {
  const JobPlace place = find(slurm);
  CHECK(place.start_up == StartUp::slurm);
  CHECK(place.rank == 3);
  CHECK(place.size == 4);
  CHECK(place.local_rank == 1);
  CHECK(place.address == "gpu07");
  CHECK(place.port == 30007);
  CHECK(find(with(slurm, {{"MASTER_ADDR", "elsewhere"}})).address == "elsewhere");
}

TEST_CASE("the first of what started the job counts, or what the program names") {
  const Variables all = with(with(torchrun, slurm), {{"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "2"}});
  CHECK(find(all).start_up == StartUp::mpi);
  CHECK(find(all).local_rank == 2);
  CHECK(find(with(torchrun, slurm)).start_up == StartUp::torchrun);
  CHECK(find(all, StartUp::slurm).start_up == StartUp::slurm);
  CHECK(find(all, StartUp::single).size == 1);
}

TEST_CASE("variables that make no sense are errors that name them") {
  CHECK_THROWS_WITH(find(with(torchrun, {{"RANK", "five"}})), ContainsSubstring("RANK is a number, not \"five\""));
  CHECK_THROWS_WITH(find(with(torchrun, {{"RANK", "8"}})), ContainsSubstring("RANK is 8: the 8 ranks of WORLD_SIZE"));
  CHECK_THROWS_WITH(find(with(slurm, {{"SLURM_PROCID", "4"}})),
                    ContainsSubstring("SLURM_PROCID is 4: the 4 ranks of SLURM_NTASKS"));
  CHECK_THROWS_WITH(find(with(torchrun, {{"MASTER_PORT", "70000"}})), ContainsSubstring("MASTER_PORT is 70000"));
  CHECK_THROWS_WITH(find(with(slurm, {{"TRIREME_PORT", "0"}})), ContainsSubstring("TRIREME_PORT is 0"));
  CHECK_THROWS_WITH(find(with(torchrun, {{"LOCAL_WORLD_SIZE", "0"}})), ContainsSubstring("LOCAL_WORLD_SIZE is 0"));
  for (const char* wrong : {"", " ", "8 ", "+8", "0x8", "8.0", "8,4", "99999999999999999999", "-1"}) {
    CHECK_THROWS_WITH(find(with(torchrun, {{"WORLD_SIZE", wrong}})), ContainsSubstring("WORLD_SIZE is a number, not"));
  }
  CHECK_THROWS_WITH(find({}, StartUp::torchrun), ContainsSubstring("RANK is not set"));
  CHECK_THROWS_WITH(find({}, StartUp::slurm), ContainsSubstring("SLURM_PROCID is not set"));
}

TEST_CASE("threads of a rank are the first number of OMP_NUM_THREADS, which is passed over where it makes no sense") {
  const char* const before = std::getenv("OMP_NUM_THREADS");
  const std::optional<std::string> kept = before == nullptr ? std::nullopt : std::optional<std::string>(before);
  const auto threads = [](const char* text) {
    setenv("OMP_NUM_THREADS", text, 1);
    return threads_of_rank(12, 2, 0);
  };
  CHECK(threads("4") == 4);
  CHECK(threads("4,2") == 4);
  CHECK(threads(" 3 , 2,1 ") == 3);
  for (const char* wrong : {"", " ", "0", "-4", "4x", "four", "4,", ",4", "4,x", "4 2", "0x4", "4.5", "5000000000", "100000"}) {
    CAPTURE(wrong);
    CHECK(threads(wrong) == 6);
  }
  setenv("OMP_NUM_THREADS", "4", 1);
  CHECK(threads_of_rank(12, 2, 5) == 5);
  unsetenv("OMP_NUM_THREADS");
  CHECK(threads_of_rank(12, 2, 0) == 6);
  CHECK(threads_of_rank(1, 2, 0) == 1);
  if (kept) setenv("OMP_NUM_THREADS", kept->c_str(), 1);
}

TEST_CASE("one of several processes does not train alone") {
  CHECK_NOTHROW(expect_alone({}));
  CHECK_NOTHROW(expect_alone({{"WORLD_SIZE", "1"}}));
  CHECK_NOTHROW(expect_alone({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}));  // a batch script, of which there is one
  CHECK_THROWS_WITH(expect_alone({{"WORLD_SIZE", "4"}}),
                    ContainsSubstring("WORLD_SIZE is 4") && ContainsSubstring("mpirun -n 4 PROGRAM"));
  CHECK_THROWS_WITH(expect_alone({{"SLURM_STEP_NUM_TASKS", "3"}}), ContainsSubstring("srun --mpi=pmix -n 3 PROGRAM"));
  CHECK_THROWS_WITH(find({{"WORLD_SIZE", "4"}}), ContainsSubstring("RANK is not set"));
}

TEST_CASE("MPI joins as many processes as were started") {
  CHECK_NOTHROW(expect_world(1, {}));
  CHECK_NOTHROW(expect_world(4, {{"OMPI_COMM_WORLD_SIZE", "4"}}));
  CHECK_NOTHROW(expect_world(1, {{"OMPI_COMM_WORLD_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}}));  // mpirun's daemons
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    CHECK_THROWS_WITH(expect_world(1, {{name, "4"}}), ContainsSubstring("4 processes were started"));
  }
}

TEST_CASE("the first process of a job is known before its ranks are joined") {
  CHECK(is_first({}));
  CHECK(is_first({{"OMPI_COMM_WORLD_RANK", "0"}}));
  CHECK_FALSE(is_first({{"OMPI_COMM_WORLD_RANK", "1"}}));
  CHECK_FALSE(is_first(torchrun));
  CHECK_FALSE(is_first(slurm));
}

TEST_CASE("the first host of a list of Slurm's") {
  CHECK(first_host("node1") == "node1");
  CHECK(first_host("node1,node2") == "node1");
  CHECK(first_host("node[03-07,12],other") == "node03");
  CHECK(first_host("rack[2,4]-gpu,other[1-2]") == "rack2-gpu");
  CHECK(first_host("node[5]") == "node5");
}
