// The addresses that the processes of a group reach each other by.
#pragma once

#include <string>

namespace calque {

// A listening socket at `address` and nowhere else; the caller owns it. If the address is not this machine's
// own (a translated one, in some containers), it listens on all.
int listen_at(const std::string& address, int port);

int free_port();  // of the loopback interface

// The numeric address of this machine on the way to `address`.
std::string own_address_towards(const std::string& address, int port);

}  // namespace calque
