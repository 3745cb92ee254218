// What the launcher does on other machines, through ssh or a program that is called like it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace calque {

using Words = std::vector<std::string>;

// A program that runs commands on other machines, called as `ssh HOST COMMAND…`.
struct RemoteShell {
  Words words;
  // It gives the command to a shell over there, as ssh does; `ip netns exec` runs the words as they are.
  bool joins_words = true;
};

// Tries on `host` what the program does with words, unless it is ssh.
RemoteShell find_remote_shell(const std::string& program, const std::string& host);

// So that nobody is asked for a password, and a connection that breaks is noticed. `line` is for the POSIX
// shell, whatever the user's shell over there is; it has no line breaks, which csh refuses inside quotes.
Words remote_command(const RemoteShell& shell, const std::string& host, const std::string& line);

// Starts a process of a group of its own, which dies with this one. `first`: it has this one's stdin, if that
// is no terminal, and stdout; others read nothing and print to nobody. `input`: it reads from this
// descriptor, and does not die: it learns the end of this process from the end of its input.
pid_t start_process(const Words& command, const Words& environment, bool first, int input = -1);

// Whether hosts let a command be run, within ten seconds; all are asked at once.
std::vector<bool> hosts_answer(const RemoteShell& shell, const Words& hosts);

// Watches over the processes that were started on a host: those with `mark` in their environment. ssh does
// not pass signals on, and leaves a command running whose connection is gone: so a second connection does
// both. It ends them when this object is destroyed, or this process.
class RemoteWatch {
 public:
  RemoteWatch(const RemoteShell& shell, const std::string& host, const std::string& mark);
  ~RemoteWatch();  // waits until they have ended
  RemoteWatch(const RemoteWatch&) = delete;
  RemoteWatch& operator=(const RemoteWatch&) = delete;

  const std::string& host() const { return host_; }
  // INT, which also reaches processes that start later, or KILL.
  void signal(const std::string& name) const;
  void let_go();  // begins to end them
  // Whether the connection has ended by itself: then it has ended nothing, and passes nothing on.
  bool is_lost();
  void connect();  // again

 private:
  std::string host_;
  Words command_;
  pid_t pid_ = -1;
  int pipe_ = -1;
};

}  // namespace calque
