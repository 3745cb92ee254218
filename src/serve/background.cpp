#include "background.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include <algorithm>
#include <boost/asio/post.hpp>

#include "calque/serve/engine.h"

namespace calque {

namespace {

// One client leaves room for the others.
constexpr size_t max_unfinished = 64, max_of_one_client = 32;

}  // namespace

void Background::check_room(const std::string& client) const {
  const std::lock_guard lock(mutex_);
  const auto own =
      std::find_if(clients_.begin(), clients_.end(), [&](const Client& one) { return one.name == client; });
  if (unfinished_ >= max_unfinished || (own != clients_.end() && own->work.size() >= max_of_one_client))
    throw QueueFull("too many requests are waiting");
}

void Background::add(const std::string& client, std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    auto own =
        std::find_if(clients_.begin(), clients_.end(), [&](const Client& one) { return one.name == client; });
    if (own == clients_.end()) own = clients_.insert(own, {client, {}});
    own->work.push_back(std::move(work));
    ++unfinished_;
  }
  boost::asio::post(threads_, [this] { run_next(); });
}

void Background::join() { threads_.join(); }

// The first work of the next client.
void Background::run_next() {
  at::get_num_threads();   // whose first call would set the next line back
  omp_set_num_threads(1);  // of this thread: translating goes on meanwhile
  std::function<void()> work;
  {
    const std::lock_guard lock(mutex_);
    Client& next = clients_.front();
    work = std::move(next.work.front());
    next.work.pop_front();
    if (next.work.empty()) {
      clients_.pop_front();
    } else {
      clients_.splice(clients_.end(), clients_, clients_.begin());
    }
  }
  work();
  const std::lock_guard lock(mutex_);
  --unfinished_;
}

}  // namespace calque
