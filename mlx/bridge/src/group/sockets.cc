#include "group/sockets.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

namespace ingot {

namespace {

// Returns the ports of the addresses of each rank in a host file: [["10.0.0.1:5000"], ["10.0.0.2:5000"]].
std::vector<std::vector<int>> ports_of(const char* path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::vector<int>> ports;
  int depth = 0;
  for (size_t at = 0; at < text.size(); at++) {
    if (text[at] == '[' && ++depth == 2) {
      ports.emplace_back();
    } else if (text[at] == ']') {
      depth--;
    } else if (text[at] == '"' && depth == 2) {
      const size_t end = std::min(text.find('"', at + 1), text.size());
      const std::string address = text.substr(at + 1, end - at - 1);
      ports.back().push_back(std::atoi(address.c_str() + address.rfind(':') + 1));
      at = end;
    }
  }
  return ports;
}

// Returns a port of a connection of IPv4, -1 if it is something else. name is getsockname or getpeername.
int port_of(int fd, int (*name)(int, sockaddr*, socklen_t*)) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  if (name(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 || address.sin_family != AF_INET) {
    return -1;
  }
  return ntohs(address.sin_port);
}

int peer_name(int fd, sockaddr* a, socklen_t* n) { return getpeername(fd, a, n); }
int own_name(int fd, sockaddr* a, socklen_t* n) { return getsockname(fd, a, n); }

}  // namespace

std::set<int> open_sockets() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  std::set<int> found;
  for (int fd = 0; fd < int(std::min<rlim_t>(limit.rlim_cur, 1 << 16)); fd++) {
    int type = 0;
    socklen_t size = sizeof(type);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0) {
      found.insert(fd);
    }
  }
  return found;
}

RingSockets ring_sockets(const std::set<int>& before) {
  const char *file = std::getenv("MLX_HOSTFILE"), *text = std::getenv("MLX_RANK");
  if (!file || !text) {
    return {};
  }
  const auto ports = ports_of(file);
  const size_t rank = size_t(std::atoi(text));
  const bool simple = std::all_of(ports.begin(), ports.end(), [](const auto& p) { return p.size() == 1; });
  if (!simple || rank >= ports.size() || ports.size() < 2) {
    return {};
  }
  const int own = ports[rank][0], next = ports[(rank + 1) % ports.size()][0];
  std::vector<int> left, right;
  for (int fd : open_sockets()) {
    const int here = port_of(fd, own_name), there = port_of(fd, peer_name);
    if (before.count(fd) || here < 0 || there < 0) {
      continue;
    }
    if (here == own) {
      left.push_back(fd);
    } else if (there == next) {
      right.push_back(fd);
    }
  }
  if (left.size() != 1 || right.size() != 1) {
    return {};
  }
  return {left[0], right[0]};
}

}  // namespace ingot
