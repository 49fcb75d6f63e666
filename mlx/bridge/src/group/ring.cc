// The TCP ring over the connections that MLX opened.
//
// MLX's own operations (mlx 0.32.4, distributed/ring/ring.cpp) have a thread for each connection, which calls recv and
// send without ever waiting. On a rank with one core these threads take the core from each other and from the kernels.
// Here the rank's own thread moves the bytes, and sleeps while neither neighbour is ready.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "group/sockets.h"

namespace ingot {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kPiece = 1 << 18;  // bytes of one call: both directions take turns, and sums stay in the cache
constexpr auto kSpin = std::chrono::microseconds(50);  // before the thread sleeps, which costs about as much
// Bytes up to which a sum gathers all numbers, in half as many steps: of two ranks, and of more.
constexpr int64_t kGatheredByTwo = 1 << 17, kGathered = 1 << 14;

#ifdef MSG_NOSIGNAL
constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
#else
constexpr int kFlags = MSG_DONTWAIT;
#endif

struct Outgoing {
  int fd;
  const char* data;
  size_t bytes;
};

struct Incoming {
  int fd;
  char* data;
  size_t bytes;
};

class Ring : public Transport {
 public:
  Ring(mx::distributed::Group group, RingSockets sockets, Limit limit)
      : group_(std::move(group)), rank_(group_.rank()), size_(group_.size()), sockets_(sockets), limit_(limit) {
#ifdef SO_NOSIGPIPE
    for (int fd : {sockets.left, sockets.right}) {
      const int on = 1;
      setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
    }
#endif
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_sum(const float* in, void* out, cpu::Type type, int64_t n) override {
    run("all_sum", [&] {
      if (n * int64_t(sizeof(float)) > (size_ == 2 ? kGatheredByTwo : kGathered)) {
        sum_parts(in, static_cast<char*>(out), type, n);
        return;
      }
      sum_gathered(in, n);
      round_sums(sums_.data(), out, type, n);
    });
  }

  void all_gather(const char* in, char* out, int64_t bytes) override {
    run("all_gather", [&] { gather(in, out, bytes); });
  }

  // Two ranks have two connections: each sends to the right, and so the other receives from the left.
  void send(const char* in, int64_t bytes, int to) override {
    run("send", [&] {
      check_neighbour(to);
      const int fd = to == next() ? sockets_.right : sockets_.left;
      transfer({fd, in, size_t(bytes)}, {}, [](size_t) {});
    });
  }

  void receive(char* out, int64_t bytes, int from) override {
    run("receive", [&] {
      check_neighbour(from);
      const int fd = from == previous() ? sockets_.left : sockets_.right;
      transfer({}, {fd, out, size_t(bytes)}, [](size_t) {});
    });
  }

 private:
  int next() const { return (rank_ + 1) % size_; }
  int previous() const { return (rank_ + size_ - 1) % size_; }

  // Returns the index of the block at a distance from the rank's own.
  int block(int away) const { return ((rank_ + away) % size_ + size_) % size_; }

  void check_neighbour(int rank) const {
    if (rank != next() && rank != previous()) {
      throw std::runtime_error("rank " + std::to_string(rank) + " is not beside rank " + std::to_string(rank_));
    }
  }

  // Makes room for n numbers. It does not shrink: alternating long and short sums would fill it with zeros again.
  static void grow(std::vector<float>& numbers, int64_t n) {
    if (int64_t(numbers.size()) < n) {
      numbers.resize(size_t(n));
    }
  }

  // Adds in to out, from the number `from` to the end of the `bytes` bytes of out that have arrived. Returns that end.
  static int64_t add(const float* in, float* out, int64_t from, size_t bytes) {
    const int64_t end = int64_t(bytes / sizeof(float));
    for (int64_t i = from; i < end; i++) {
      out[i] += in[i];
    }
    return end;
  }

  void gather(const char* in, char* out, int64_t bytes) {
    std::memcpy(out + rank_ * bytes, in, size_t(bytes));
    for (int step = 0; step < size_ - 1; step++) {
      pass(out + block(-step) * bytes, bytes, out + block(-step - 1) * bytes, bytes, [](size_t) {});
    }
  }

  // Adds the numbers of all ranks in the order of ranks, into sums_.
  void sum_gathered(const float* in, int64_t n) {
    grow(sums_, n);
    grow(room_, n * size_);
    gather(reinterpret_cast<const char*>(in), reinterpret_cast<char*>(room_.data()), n * int64_t(sizeof(float)));
    std::copy_n(room_.data(), n, sums_.data());
    for (int of = 1; of < size_; of++) {
      add(room_.data() + of * n, sums_.data(), 0, size_t(n) * sizeof(float));
    }
  }

  // Reduce-scatter in float32, then all-gather of the rounded sums.
  void sum_parts(const float* in, char* out, cpu::Type type, int64_t n) {
    const int64_t most = (n + size_ - 1) / size_;
    grow(sums_, most);
    grow(room_, most);
    const auto first = [&](int part) { return std::min(part * most, n); };
    const auto count = [&](int part) { return first(part + 1) - first(part); };
    const float* mine = in + first(rank_);  // what goes to the next rank
    for (int step = 0; step < size_ - 1; step++) {
      const int to = block(-step), from = block(-step - 1);
      float* sums = (step % 2 == 0 ? sums_ : room_).data();
      int64_t added = 0;
      pass(mine, count(to) * int64_t(sizeof(float)), sums, count(from) * int64_t(sizeof(float)),
           [&](size_t got) { added = add(in + first(from), sums, added, got); });
      mine = sums;
    }
    const auto size = int64_t(sum_size(type));
    round_sums(mine, out + first(block(1)) * size, type, count(block(1)));
    for (int step = 0; step < size_ - 1; step++) {
      const int to = block(1 - step), from = block(-step);
      pass(out + first(to) * size, count(to) * size, out + first(from) * size, count(from) * size, [](size_t) {});
    }
  }

  // Sends to the next rank what the previous one sends to this one.
  template <class F>
  void pass(const void* out, int64_t out_bytes, void* in, int64_t in_bytes, F&& arrived) {
    transfer({sockets_.right, static_cast<const char*>(out), size_t(out_bytes)},
             {sockets_.left, static_cast<char*>(in), size_t(in_bytes)}, arrived);
  }

  // Moves bytes in both directions until all have been. arrived is called with the number of bytes that have arrived.
  template <class F>
  void transfer(Outgoing out, Incoming in, F&& arrived) {
    size_t sent = 0, got = 0;
    auto since = Clock::now();  // when bytes moved last
    while (sent < out.bytes || got < in.bytes) {
      bool moved = false;
      if (sent < out.bytes) {
        const ssize_t n = ::send(out.fd, out.data + sent, std::min(out.bytes - sent, kPiece), kFlags);
        check(n, out.fd);
        sent += size_t(std::max<ssize_t>(n, 0));
        moved = n > 0;
      }
      if (got < in.bytes) {
        const ssize_t n = ::recv(in.fd, in.data + got, std::min(in.bytes - got, kPiece), kFlags);
        if (n == 0) {
          closed(in.fd);
        }
        check(n, in.fd);
        if (n > 0) {
          got += size_t(n);
          arrived(got);
          moved = true;
        }
      }
      const auto now = Clock::now();
      if (moved) {
        since = now;
      } else if (now - since > kSpin) {
        wait(sent < out.bytes ? out.fd : -1, got < in.bytes ? in.fd : -1, since);
      }
    }
  }

  // Sleeps until a byte can move.
  void wait(int out, int in, Clock::time_point since) const {
    const auto left = std::chrono::duration_cast<Limit>(since + limit_ - Clock::now());
    if (left.count() <= 0) {
      throw std::runtime_error("no progress in " + what_ + " for " + std::to_string(limit_.count()) + " ms");
    }
    pollfd both[] = {{out, POLLOUT, 0}, {in, POLLIN, 0}};  // poll ignores -1
    poll(both, 2, int(std::min<int64_t>(left.count(), 1000)));
  }

  void check(ssize_t result, int fd) const {
    if (result >= 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
      return;
    }
    if (errno == EPIPE || errno == ECONNRESET) {
      closed(fd);
    }
    throw std::runtime_error("the connection to rank " + std::to_string(peer(fd)) + ": " + std::strerror(errno));
  }

  [[noreturn]] void closed(int fd) const {
    throw std::runtime_error("rank " + std::to_string(peer(fd)) + " has closed its connection");
  }

  int peer(int fd) const { return fd == sockets_.right ? next() : previous(); }

  template <class F>
  void run(const char* what, F&& operation) {
    if (!broken_.empty()) {
      throw std::runtime_error("the group has ended: " + broken_);
    }
    what_ = what;
    try {
      operation();
    } catch (const std::exception& e) {
      broken_ = e.what();
      throw;
    }
  }

  mx::distributed::Group group_;  // it closes the connections
  int rank_, size_;
  RingSockets sockets_;
  Limit limit_;
  std::string what_, broken_;
  std::vector<float> sums_, room_;  // room_ is for other ranks' numbers
};

}  // namespace

std::shared_ptr<Transport> ring_transport(mx::distributed::Group group, RingSockets sockets, Limit limit) {
  return std::make_shared<Ring>(std::move(group), sockets, limit);
}

}  // namespace ingot
