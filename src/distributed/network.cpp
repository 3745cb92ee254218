#include "network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "calque/base/error.h"
#include "calque/base/log.h"

namespace calque {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses look_up(const std::string& host, int port, int kind) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = kind;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    throw UserError(fmt::format("MASTER_ADDR={}: {}", host, gai_strerror(error)),
                    "it is the address of the machine of rank 0");
  }
  return Addresses(found, freeaddrinfo);
}

std::string as_text(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST] = "";
  return getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

// The address that a packet to `to` would leave from; empty: there is no way. Sends nothing.
std::string source_towards(const addrinfo& to) {
  const int probe = socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return "";
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  const bool ok = connect(probe, to.ai_addr, to.ai_addrlen) == 0 &&
                  getsockname(probe, reinterpret_cast<sockaddr*>(&own), &size) == 0;
  close(probe);
  return ok ? as_text(reinterpret_cast<sockaddr*>(&own), size) : "";
}

// Returns the socket, or -1 with errno.
int try_to_listen(const addrinfo& at) {
  const int listener = socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return -1;
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, at.ai_addr, at.ai_addrlen) == 0 && listen(listener, 1024) == 0) return listener;
  const int error = errno;
  close(listener);
  errno = error;
  return -1;
}

}  // namespace

bool is_loopback(const std::string& numeric_address) {
  return numeric_address.starts_with("127.") || numeric_address == "::1" ||
         numeric_address.starts_with("::ffff:127.");
}

std::vector<std::string> numeric_addresses(const std::string& host) {
  const Addresses found = look_up(host, 0, SOCK_STREAM);
  std::vector<std::string> all;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    const std::string text = as_text(one->ai_addr, one->ai_addrlen);
    if (!text.empty() && std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
  }
  std::stable_partition(all.begin(), all.end(), [](const std::string& one) { return !is_loopback(one); });
  return all;
}

Listener listen_at(const std::string& host, int port) {
  int error = EADDRNOTAVAIL;
  for (const std::string& address : numeric_addresses(host)) {
    const Addresses found = look_up(address, port, SOCK_STREAM);
    const int listener = try_to_listen(*found);
    if (listener >= 0) return {listener, address};
    if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT) error = errno;
  }
  if (error == EADDRNOTAVAIL) {
    const std::string own = own_network_address();
    throw UserError(fmt::format("MASTER_ADDR={}: not an address of this machine, on which rank 0 runs", host),
                    own.empty() ? "set it to an address of the machine of rank 0"
                                : fmt::format("set it to an address of the machine of rank 0: {}", own));
  }
  throw UserError(fmt::format("{}:{}: {}", host, port, std::strerror(error)),
                  "another job may use this port; set MASTER_PORT to another one");
}

int free_port() {
  const int probe = listen_at("127.0.0.1", 0).socket;
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size);
  close(probe);
  return ntohs(address.sin_port);
}

std::string own_address_towards(const std::string& host, int port) {
  for (const std::string& address : numeric_addresses(host)) {
    const std::string own = source_towards(*look_up(address, port, SOCK_DGRAM));
    if (!own.empty()) return own;
  }
  throw UserError(fmt::format("MASTER_ADDR={}: this machine has no way to it", host));
}

std::string own_network_address() {
  // Addresses for documentation (RFC 5737, RFC 3849): whatever is not known goes the default way.
  for (const char* elsewhere : {"192.0.2.1", "2001:db8::1"}) {
    const std::string own = source_towards(*look_up(elsewhere, 9, SOCK_DGRAM));
    if (!own.empty() && !is_loopback(own)) return own;
  }
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(all, freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & (IFF_UP | IFF_LOOPBACK)) != IFF_UP) continue;
    if (one->ifa_addr->sa_family == AF_INET) return as_text(one->ifa_addr, sizeof(sockaddr_in));
  }
  return "";
}

std::string reachable_address(const std::string& host, bool all_on_this_machine) {
  if (all_on_this_machine || host == "localhost") return host;
  const auto addresses = numeric_addresses(host);
  // A loopback address in figures was meant.
  if (addresses.front() == host || !is_loopback(addresses.front())) return host;
  const std::string own = own_network_address();
  if (own.empty()) return host;
  log::info("MASTER_ADDR={} is {} on this machine, which others cannot reach; it uses {}", host,
            addresses.front(), own);
  return own;
}

}  // namespace calque
