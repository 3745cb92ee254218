// The addresses that the processes of a group reach each other by.
#pragma once

#include <string>
#include <vector>

namespace calque {

struct Listener {
  int socket = -1;      // listening; the caller owns it
  std::string address;  // numeric: where it listens, and nowhere else
};

// Listens at the first address that `host` resolves to, IPv4 or IPv6, and that belongs to this machine.
// Throws a UserError if none is.
Listener listen_at(const std::string& host, int port);

int free_port();  // of the loopback interface

bool is_loopback(const std::string& numeric_address);

// The numeric addresses that `host` resolves to; those that other machines can reach come first.
std::vector<std::string> numeric_addresses(const std::string& host);

// The numeric address of this machine on the way to `host`.
std::string own_address_towards(const std::string& host, int port);

// The numeric address by which other machines reach this one: that of the interface with the default route,
// else of the first that has one; empty if this machine is in no network.
std::string own_network_address();

// Where rank 0 is reached if MASTER_ADDR is `host`. Debian's /etc/hosts gives a machine's own name a loopback
// address, which other machines cannot reach: then it is the machine's address in the network.
std::string reachable_address(const std::string& host, bool all_on_this_machine);

}  // namespace calque
