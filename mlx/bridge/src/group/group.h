// Groups of ranks that compute together: each has a part of a model's weights.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/mlx.h"
#include "cpu/types.h"

namespace ingot {

namespace mx = mlx::core;

// Transport carries bytes between the ranks of a group. All ranks call the same operations in the same order, each on
// its engine thread. An operation returns when it is complete on this rank. It throws if it fails, or if it takes
// longer than the group's limit; the group is then broken, and all later operations throw.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Adds n numbers of all ranks in float32, and rounds the sums to a type. The results of all ranks have equal bits. in
  // and out do not overlap.
  virtual void all_sum(const float* in, void* out, cpu::Type type, int64_t n) = 0;
  // Writes the bytes of all ranks, in order, to out.
  virtual void all_gather(const char* in, char* out, int64_t bytes) = 0;
  virtual void send(const char* in, int64_t bytes, int to) = 0;
  virtual void receive(char* out, int64_t bytes, int from) = 0;
};

using Limit = std::chrono::milliseconds;

// The numbers that are added up at a time where a sum passes through a buffer, which then stays in the cache.
constexpr int64_t kSummed = 1 << 16;

// Returns the bytes of a sum in a type.
size_t sum_size(cpu::Type type);
// Rounds n sums to a type.
void round_sums(const float* sums, void* out, cpu::Type type, int64_t n);

// Returns a group whose ranks are engine threads of this process. They name it alike.
std::shared_ptr<Transport> join_local(const std::string& name, int rank, int size, Limit limit);

// Returns MLX's group over a backend, whose parameters are in the environment.
std::shared_ptr<Transport> join_backend(const std::string& backend, Limit limit);

// The operations on arrays. group is an index that ig_group_join returned. On the CPU they are nodes.
mx::array all_sum(const mx::array& x, int group, mx::Dtype as, mx::StreamOrDevice s);
// Returns x of the rank root on all ranks.
mx::array broadcast_from(const mx::array& x, int group, int root, mx::StreamOrDevice s);
// Joins the last axes of all ranks' arrays, whose widths are given.
mx::array all_gather(const mx::array& x, int group, const std::vector<int>& widths, mx::StreamOrDevice s);
// Returns x once it has been sent.
mx::array sent(const mx::array& x, int group, int to, mx::StreamOrDevice s);
mx::array received(int group, int from, mx::Dtype as, const std::vector<int>& shape, mx::StreamOrDevice s);

}  // namespace ingot
