// World: the processes that work together on one command, and this process's place among them, as the
// launcher describes them in the environment.
#pragma once

#include <functional>
#include <string>

namespace calque {

struct World {
  int rank = 0;        // this process: 0 … size - 1
  int size = 1;        // processes in all
  int local_rank = 0;  // among those of this machine
  // How many processes, this one included, share this one's processor cores. As the launcher says, or
  // guessed; ProcessGroup counts them.
  int local_size = 1;
  bool all_local = false;             // the launcher says that all processes are on this machine
  std::string address = "127.0.0.1";  // where rank 0 is reached
  int port = 29500;
  std::string interface = "";    // the network interface to use; empty: the one on the way to the address
  bool has_agent = false;        // torchrun: the store at this address belongs to the launcher
  int restarts = 0;              // how often the launcher has started these processes again
  std::string job = {};          // the launcher's name for all of these starts; empty: it has none
  std::string token = {};        // what the processes of a job have in common, and those of others have not
  double start_seconds = 600;    // how long processes wait for each other at the start
  double timeout_seconds = 120;  // and afterwards, for one that makes no progress

  bool is_first() const { return rank == 0; }
  bool is_alone() const { return size == 1; }
};

// The value of an environment variable; empty: not set.
using Environment = std::function<std::string(const std::string& name)>;

// From torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), which `calque launch`
// and people set too; else from MPI's (OMPI_COMM_WORLD_*, PMI_*); else from those of Slurm's srun. Without
// any of them, a process is alone. Values that contradict each other are a UserError.
World read_world(const Environment& environment);
World world_of_this_process();

// The first machine of Slurm's notation: "a[03-07,9],b" is "a03".
std::string first_slurm_host(const std::string& list);
// The tasks of a node in Slurm's notation: of "2(x3),1", nodes 0 to 2 have 2 and node 3 has 1. 0: it doesn't
// say.
int slurm_tasks(const std::string& list, int node);

}  // namespace calque
