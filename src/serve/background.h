// Background: two threads for what takes a while and is no translation: attention maps, scores, experiments,
// markup. Clients take turns, and no more than some work waits.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <string>

namespace calque {

class Background {
 public:
  // Throws QueueFull if too much waits, of all clients or of this one.
  void check_room(const std::string& client) const;
  // What is accepted already is never refused. The work must not throw.
  void add(const std::string& client, std::function<void()> work);
  // Waits for everything; nothing may be added any more.
  void join();

 private:
  struct Client {
    std::string name;
    std::deque<std::function<void()>> work;
  };
  void run_next();

  mutable std::mutex mutex_;
  std::list<Client> clients_;  // the next one first; none without work
  size_t unfinished_ = 0;      // what waits and what is being done
  boost::asio::thread_pool threads_{2};
};

}  // namespace calque
