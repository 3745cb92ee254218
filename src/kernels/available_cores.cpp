#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <thread>

#include "calque/kernels/threads.h"

namespace calque {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

double limit_of(double quota, double period) { return quota > 0 && period > 0 ? quota / period : unlimited; }

// "150000 100000", or "max 100000" without a limit.
double limit_of_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = -1, period = 0;
  return file >> quota >> period ? limit_of(quota, period) : unlimited;
}

// The quota is -1 without a limit.
double limit_of_v1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"), period_file(folder + "/cpu.cfs_period_us");
  double quota = -1, period = 0;
  return quota_file >> quota && period_file >> period ? limit_of(quota, period) : unlimited;
}

// Of a group and of those around it. In a container the path may be that of the host, of which only the last
// folders, or none, exist here: the folder of the mount itself always counts.
template <class LimitOf>
double tightest(const std::string& mount, std::string path, const LimitOf& limit_of_folder) {
  double limit = limit_of_folder(mount);
  while (path.size() > 1) {
    limit = std::min(limit, limit_of_folder(mount + path));
    path.resize(std::min(path.rfind('/'), path.size() - 1));
  }
  return limit;
}

bool has_word(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

int cores_of_the_affinity_mask() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());  // more cores than a cpu_set_t has room for
}

}  // namespace

// Each line of /proc/self/cgroup is "number:controllers:path"; version 2 has no controllers.
double cpu_time_limit(const std::string& root) {
  const std::string mount = root + "/sys/fs/cgroup";
  double limit = std::min(limit_of_v2(mount), limit_of_v1(mount + "/cpu"));
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    std::istringstream parts(line);
    std::string number, controllers, path;
    std::getline(parts, number, ':');
    std::getline(parts, controllers, ':');
    std::getline(parts, path);
    if (controllers.empty()) limit = std::min(limit, tightest(mount, path, limit_of_v2));
    if (has_word(controllers, "cpu")) {
      for (const std::string& folder : {std::string("cpu"), controllers})  // one is a link to the other
        limit = std::min(limit, tightest(mount + "/" + folder, path, limit_of_v1));
    }
  }
  return limit;
}

int available_cores() {
  const double cores = std::max(1, cores_of_the_affinity_mask());
  return static_cast<int>(std::ceil(std::min(cores, cpu_time_limit())));
}

}  // namespace calque
