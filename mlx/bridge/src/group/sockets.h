// The TCP connections of a ring of ranks.
#pragma once

#include <memory>
#include <set>

#include "group/group.h"
#include "mlx/distributed/distributed.h"

namespace ingot {

// The connections of a rank to its neighbours in the ring; -1: none.
struct RingSockets {
  int left = -1;   // which the previous rank has opened
  int right = -1;  // to the next rank
};

// Returns the sockets that are open.
std::set<int> open_sockets();

// Returns the connections that MLX opened for the ring of MLX_HOSTFILE while the sockets of before were open. There are
// none if the file names more than one address for a rank.
RingSockets ring_sockets(const std::set<int>& before);

// Returns the group's transport over its connections.
std::shared_ptr<Transport> ring_transport(mx::distributed::Group group, RingSockets sockets, Limit limit);

}  // namespace ingot
