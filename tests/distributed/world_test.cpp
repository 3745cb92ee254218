#include "calque/distributed/world.h"

#include <gtest/gtest.h>

#include <map>

#include "calque/base/error.h"

namespace calque {
namespace {

World read(const std::map<std::string, std::string>& variables) {
  return read_world([&](const std::string& name) {
    const auto found = variables.find(name);
    return found != variables.end() ? found->second : "";
  });
}

std::string refusal(const std::map<std::string, std::string>& variables) {
  try {
    read(variables);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(World, IsAloneWithoutALauncher) {
  const World world = read({{"MASTER_ADDR", "10.0.0.1"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}});
  EXPECT_TRUE(world.is_alone());
  EXPECT_TRUE(world.is_first());
}

TEST(World, ReadsTorchrunsVariables) {
  const World world = read({{"RANK", "3"},
                            {"WORLD_SIZE", "4"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "node0"},
                            {"MASTER_PORT", "1234"},
                            {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                            {"TORCHELASTIC_RESTART_COUNT", "2"},
                            {"TORCHELASTIC_RUN_ID", "8f3a"}});
  EXPECT_EQ(world.rank, 3);
  EXPECT_EQ(world.size, 4);
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.local_size, 2);
  EXPECT_EQ(world.address, "node0");
  EXPECT_EQ(world.port, 1234);
  EXPECT_TRUE(world.has_agent);
  EXPECT_EQ(world.restarts, 2);
  EXPECT_EQ(world.job, "8f3a");
  EXPECT_FALSE(world.is_first());
}

TEST(World, TorchrunsDefaultRunIdIsNoJob) {
  EXPECT_EQ(read({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"TORCHELASTIC_RUN_ID", "none"}}).job, "");
}

TEST(World, OwnVariablesComeBeforeThoseOfMpiAndSlurm) {
  const std::map<std::string, std::string> mpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                                                  {"OMPI_COMM_WORLD_SIZE", "3"},
                                                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                                                  {"SLURM_PROCID", "5"},
                                                  {"SLURM_STEP_NUM_TASKS", "6"}};
  EXPECT_EQ(read(mpi).rank, 1);
  EXPECT_EQ(read(mpi).address, "127.0.0.1");
  auto both = mpi;
  both.insert({{"RANK", "0"}, {"WORLD_SIZE", "2"}});
  EXPECT_EQ(read(both).size, 2);
  const World mpich =
      read({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(mpich.rank, 1);
  EXPECT_TRUE(mpich.all_local);
}

TEST(World, SlurmsOwnPmiMeansSlurm) {
  const std::map<std::string, std::string> step = {{"PMI_RANK", "3"},
                                                   {"PMI_SIZE", "4"},
                                                   {"SLURM_PROCID", "3"},
                                                   {"SLURM_STEP_NUM_TASKS", "4"},
                                                   {"SLURM_LOCALID", "1"},
                                                   {"SLURM_NODEID", "1"},
                                                   {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                                                   {"SLURM_STEP_NODELIST", "n[1-2]"},
                                                   {"SLURM_JOB_ID", "77"},
                                                   {"SLURM_STEP_ID", "0"}};
  EXPECT_EQ(read(step).address, "n1");
  EXPECT_FALSE(read(step).all_local);
  EXPECT_EQ(read(step).local_rank, 1);
  EXPECT_EQ(read(step).local_size, 2);
  EXPECT_EQ(read(step).token, "slurm-77.0");
  // mpirun inside a step of one task: the job's tasks are not Slurm's.
  auto inside = step;
  inside["SLURM_STEP_NUM_TASKS"] = "1";
  inside["MASTER_ADDR"] = "n2";
  EXPECT_EQ(read(inside).token, "");
}

TEST(World, FindsRankZeroInSlurmsListOfMachines) {
  const World world = read({{"SLURM_PROCID", "5"},
                            {"SLURM_STEP_NUM_TASKS", "6"},
                            {"SLURM_LOCALID", "2"},
                            {"SLURM_STEP_NODELIST", "gpu[03-04]"}});
  EXPECT_EQ(world.rank, 5);
  EXPECT_EQ(world.local_rank, 2);
  EXPECT_EQ(world.address, "gpu03");
  EXPECT_EQ(first_slurm_host("a,b"), "a");
  EXPECT_EQ(first_slurm_host("a[7]"), "a7");
  EXPECT_EQ(first_slurm_host("a[7,9],b"), "a7");
  EXPECT_EQ(first_slurm_host("a,b[1-2]"), "a");
}

TEST(World, KnowsTheTasksOfSlurmsNodes) {
  EXPECT_EQ(slurm_tasks("2(x3),1", 0), 2);
  EXPECT_EQ(slurm_tasks("2(x3),1", 2), 2);
  EXPECT_EQ(slurm_tasks("2(x3),1", 3), 1);
  EXPECT_EQ(slurm_tasks("2(x3),1", 4), 0);
  EXPECT_EQ(slurm_tasks("4", 0), 4);
  EXPECT_EQ(slurm_tasks("", 0), 0);
  EXPECT_EQ(slurm_tasks("nonsense", 1), 0);
  const std::map<std::string, std::string> step = {{"SLURM_PROCID", "5"},
                                                   {"SLURM_STEP_NUM_TASKS", "7"},
                                                   {"SLURM_LOCALID", "1"},
                                                   {"SLURM_NODEID", "2"},
                                                   {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                                                   {"SLURM_JOB_ID", "77"},
                                                   {"SLURM_STEP_ID", "0"},
                                                   {"SLURM_STEP_NODELIST", "n[1-4]"}};
  EXPECT_EQ(read(step).local_size, 2);
  EXPECT_FALSE(read(step).all_local);
  EXPECT_EQ(read(step).token, "slurm-77.0");
  auto one_node = step;
  one_node["SLURM_STEP_TASKS_PER_NODE"] = "7";
  one_node["SLURM_NODEID"] = "0";
  EXPECT_TRUE(read(one_node).all_local);
  EXPECT_EQ(read(one_node).address, "127.0.0.1");
}

TEST(World, WhereNobodySaysItTheAddressTellsWhetherThereAreSeveralMachines) {
  const World pods = read({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "train-0.train"}});
  EXPECT_EQ(pods.local_size, 1);
  EXPECT_FALSE(pods.all_local);
  for (const char* address : {"127.0.0.1", "localhost", ""}) {
    const World local = read({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", address}});
    EXPECT_EQ(local.local_size, 4) << address;
    EXPECT_EQ(local.local_rank, 1) << address;
    EXPECT_TRUE(local.all_local) << address;
  }
}

TEST(World, ReadsTokensAndTimes) {
  const World world = read({{"RANK", "0"},
                            {"WORLD_SIZE", "2"},
                            {"TORCHELASTIC_RUN_ID", "run"},
                            {"CALQUE_START_SECONDS", "2.5"},
                            {"CALQUE_TIMEOUT_SECONDS", "7"}});
  EXPECT_EQ(world.token, "run");
  EXPECT_EQ(world.start_seconds, 2.5);
  EXPECT_EQ(world.timeout_seconds, 7);
  EXPECT_EQ(
      read({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TORCHELASTIC_RUN_ID", "run"}, {"CALQUE_JOB_TOKEN", "t"}})
          .token,
      "t");
  EXPECT_EQ(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"CALQUE_START_SECONDS", "soon"}}),
            "environment: CALQUE_START_SECONDS=soon: expected a number of seconds");
}

TEST(World, RefusesWhatContradictsItself) {
  EXPECT_EQ(refusal({{"RANK", "1"}}), "environment: RANK is set, but WORLD_SIZE is not");
  EXPECT_EQ(refusal({{"WORLD_SIZE", "2"}}), "environment: WORLD_SIZE is set, but RANK is not");
  EXPECT_EQ(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
            "environment: RANK=2, but WORLD_SIZE=2: ranks are counted from 0");
  EXPECT_EQ(refusal({{"RANK", "x"}, {"WORLD_SIZE", "2"}}),
            "environment: RANK=x: expected a number from 0 up");
  EXPECT_EQ(refusal({{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
            "environment: WORLD_SIZE=0: expected a number from 1 up");
  EXPECT_EQ(refusal({{"OMPI_COMM_WORLD_RANK", "1"},
                     {"OMPI_COMM_WORLD_SIZE", "4"},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
            "environment: MASTER_ADDR is not set, and the processes may run on several machines");
  EXPECT_EQ(refusal({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}),
            "environment: MASTER_ADDR is not set, and the processes may run on several machines");
}

}  // namespace
}  // namespace calque
