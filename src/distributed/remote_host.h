// What the launcher does on other machines, through ssh or a program that is called like it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace calque {

using Words = std::vector<std::string>;

// `ssh HOST COMMAND`, so that nobody is asked for a password, and a connection that breaks is noticed.
// `line` is for a shell over there.
Words remote_command(const std::string& remote_shell, const std::string& host, const std::string& line);

// Starts a process of a group of its own, which dies with this one. `first`: it has this one's stdin, if that
// is no terminal, and stdout; others read nothing and print to nobody. `input`: it reads from this
// descriptor.
pid_t start_process(const Words& command, const Words& environment, bool first, int input = -1);

// Whether hosts let a command be run, within ten seconds; all are asked at once.
std::vector<bool> hosts_answer(const std::string& remote_shell, const Words& hosts);

// Watches over the processes that were started on a host: those with `mark` in their environment. ssh does
// not pass signals on, and leaves a command running whose connection is gone: so a second connection does
// both. It ends them when this object is destroyed, or this process.
class RemoteWatch {
 public:
  RemoteWatch(const std::string& remote_shell, const std::string& host, const std::string& mark);
  ~RemoteWatch();  // waits until they have ended
  RemoteWatch(const RemoteWatch&) = delete;
  RemoteWatch& operator=(const RemoteWatch&) = delete;

  void signal(const std::string& name) const;  // INT, KILL
  void let_go();                               // begins to end them

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
};

}  // namespace calque
