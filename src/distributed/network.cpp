#include "network.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

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

}  // namespace

int listen_at(const std::string& address, int port) {
  const Addresses found = look_up(address, port, SOCK_STREAM);
  const int listener = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) throw SystemError("socket", errno);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  int error = bind(listener, found->ai_addr, found->ai_addrlen) == 0 ? 0 : errno;
  if (error == EADDRNOTAVAIL) {
    log::warn("MASTER_ADDR={} is not an address of this machine; listening on all of its addresses", address);
    sockaddr_storage any{};
    any.ss_family = static_cast<sa_family_t>(found->ai_family);
    // The port stands at the same place in addresses of both kinds.
    std::memcpy(any.__ss_padding, found->ai_addr->sa_data, sizeof(in_port_t));
    error = bind(listener, reinterpret_cast<sockaddr*>(&any), found->ai_addrlen) == 0 ? 0 : errno;
  }
  if (error == 0 && listen(listener, 1024) != 0) error = errno;
  if (error != 0) {
    close(listener);
    throw UserError(fmt::format("{}:{}: {}", address, port, std::strerror(error)),
                    "another job may use this port; set MASTER_PORT to another one");
  }
  return listener;
}

int free_port() {
  const int probe = listen_at("127.0.0.1", 0);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size);
  close(probe);
  return ntohs(address.sin_port);
}

std::string own_address_towards(const std::string& address, int port) {
  const Addresses found = look_up(address, port, SOCK_DGRAM);
  const int probe = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);  // connecting sends nothing
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  char text[NI_MAXHOST] = "";
  const bool ok = probe >= 0 && connect(probe, found->ai_addr, found->ai_addrlen) == 0 &&
                  getsockname(probe, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
                  getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0,
                              NI_NUMERICHOST) == 0;
  const int error = errno;
  if (probe >= 0) close(probe);
  if (!ok) throw UserError(fmt::format("MASTER_ADDR={}: {}", address, std::strerror(error)));
  return text;
}

}  // namespace calque
