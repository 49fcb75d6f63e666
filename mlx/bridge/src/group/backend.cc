// MLX's groups: processes that MPI, the TCP ring or another backend connects.
#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <cinttypes>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>

#include "group/group.h"
#include "group/sockets.h"
#include "mlx/allocator.h"
#include "mlx/backend/cpu/encoder.h"
#include "mlx/distributed/distributed.h"
#include "mlx/distributed/distributed_impl.h"
#include "mlx/scheduler.h"

namespace ingot {

namespace {

mx::array buffer(int64_t n, mx::Dtype type) {
  if (n > std::numeric_limits<int>::max()) {
    throw std::runtime_error("a message between ranks has " + std::to_string(n) + " elements");
  }
  mx::array a(mx::Shape{int(n)}, type, nullptr, {});
  a.set_data(mx::allocator::malloc(a.nbytes()));
  a.set_status(mx::array::Status::available);
  return a;
}

// Backend runs MLX's operations on the thread of a stream of its own, and waits for them with a limit: they have none
// (mlx 0.32.4, distributed/ring/ring.cpp and distributed/mpi/mpi.cpp). They work on copies, which outlive an operation
// that never ends.
class Backend : public Transport {
 public:
  Backend(mx::distributed::Group group, Limit limit)
      : group_(std::move(group)), stream_(mx::new_stream(mx::Device::cpu)), limit_(limit) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }

  void all_sum(const float* in, void* out, cpu::Type type, int64_t n) override {
    for (int64_t begin = 0; begin < n; begin += kSummed) {
      const int64_t count = std::min(n - begin, kSummed);
      if (sums_.empty() || int64_t(sums_[0].size()) != count) {
        sums_ = {buffer(count, mx::float32), buffer(count, mx::float32)};
      }
      auto &from = sums_[0], &to = sums_[1];
      std::memcpy(from.data<float>(), in + begin, from.nbytes());
      run("all_sum", sums_, [&] { impl().all_sum(from, to, stream_); });
      round_sums(to.data<float>(), static_cast<char*>(out) + size_t(begin) * sum_size(type), type, count);
    }
  }

  void all_gather(const char* in, char* out, int64_t bytes) override {
    auto from = filled(in, bytes, mx::uint8), to = buffer(bytes * size(), mx::uint8);
    run("all_gather", {from, to}, [&] { impl().all_gather(from, to, stream_); });
    std::memcpy(out, to.data<char>(), to.nbytes());
  }

  void send(const char* in, int64_t bytes, int to) override {
    auto from = filled(in, bytes, mx::uint8);
    run("send", {from}, [&] { impl().send(from, to, stream_); });
  }

  void receive(char* out, int64_t bytes, int from) override {
    auto to = buffer(bytes, mx::uint8);
    run("receive", {to}, [&] { impl().recv(to, from, stream_); });
    std::memcpy(out, to.data<char>(), to.nbytes());
  }

 private:
  mx::distributed::detail::GroupImpl& impl() { return *group_.raw_group(); }

  static mx::array filled(const void* in, int64_t n, mx::Dtype type) {
    auto a = buffer(n, type);
    std::memcpy(a.data<char>(), in, a.nbytes());
    return a;
  }

  template <class F>
  void run(const char* what, std::vector<mx::array> used, F&& operation) {
    struct Completion {
      std::mutex lock;
      std::condition_variable changed;
      bool done = false;
    };
    if (!broken_.empty()) {
      throw std::runtime_error("the group has ended: " + broken_);
    }
    auto completion = std::make_shared<Completion>();
    try {
      operation();
      mx::cpu::get_command_encoder(stream_).dispatch([completion, used = std::move(used)] {
        std::lock_guard lock(completion->lock);
        completion->done = true;
        completion->changed.notify_all();
      });
      std::unique_lock lock(completion->lock);
      if (!completion->changed.wait_for(lock, limit_, [&] { return completion->done; })) {
        throw std::runtime_error("no progress in " + std::string(what) + " for " + std::to_string(limit_.count()) +
                                 " ms");
      }
      mx::scheduler::check_error(stream_);
    } catch (const std::exception& e) {
      broken_ = e.what();
      throw;
    }
  }

  mx::distributed::Group group_;
  mx::Stream stream_;
  Limit limit_;
  std::string broken_;
  std::vector<mx::array> sums_;  // this rank's numbers and all ranks'; sums of one size follow each other
};

#ifdef __linux__
// The ring's buffers: four of 8 MiB in one allocation, which it fills with zeros (mlx 0.32.4,
// distributed/ring/ring.cpp). The allocator puts its header before them, so that they take a page more.
constexpr uintptr_t kRingBuffers = 4 << 23;

// Returns the addresses of this process's mappings without a file that have exactly that size.
std::set<uintptr_t> mappings_of_size(uintptr_t bytes) {
  std::set<uintptr_t> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0, file = 0;
    const char* format = "%" SCNxPTR "-%" SCNxPTR " rw-p %*s %*s %" SCNuPTR;
    if (std::sscanf(line.c_str(), format, &begin, &end, &file) == 3 && file == 0 && end - begin == bytes) {
      found.insert(begin);
    }
  }
  return found;
}

// Joins the ring, and gives the pages of its buffers back to the system, since most of them are never used. They read
// as zeros, as before. If the allocator places the buffers in another way, they stay.
mx::distributed::Group join_ring() {
  const auto page = uintptr_t(sysconf(_SC_PAGESIZE));
  const auto before = mappings_of_size(kRingBuffers + page);
  auto group = mx::distributed::init(true, "ring");
  for (uintptr_t begin : mappings_of_size(kRingBuffers + page)) {
    if (!before.count(begin)) {
      madvise(reinterpret_cast<void*>(begin + page), kRingBuffers, MADV_DONTNEED);
    }
  }
  return group;
}
#else
mx::distributed::Group join_ring() { return mx::distributed::init(true, "ring"); }
#endif

}  // namespace

std::shared_ptr<Transport> join_backend(const std::string& backend, Limit limit) {
  if (!mx::distributed::is_available(backend)) {
    throw std::runtime_error("the engine has no backend " + backend + " for groups here");
  }
  if (backend != "ring") {
    return std::make_shared<Backend>(mx::distributed::init(true, backend), limit);
  }
  const auto before = open_sockets();
  auto group = join_ring();
  const auto sockets = ring_sockets(before);
  if (sockets.left < 0 || sockets.right < 0) {
    return std::make_shared<Backend>(std::move(group), limit);
  }
  return ring_transport(std::move(group), sockets, limit);
}

}  // namespace ingot
