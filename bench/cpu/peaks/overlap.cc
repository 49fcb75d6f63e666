// Measures how far reading weights from memory and multiplying them overlap on this machine: `overlap THREADS ROUNDS`.
//
// The loop is the simplest with the shape of a product of few rows: it reads each cache line of a large region once,
// and multiplies it by vectors from a small buffer in the L1 cache, as kernels do by their activations. It has no
// scales, no unpacking and no results. Each line of output has three numbers: the multiplications per cache line, the
// time of the loop over the L2 cache divided by that of a plain read, and the time of the loop over memory divided by
// the longer of these two. The last is 1 where reading and multiplying overlap fully. The ratios are medians over
// rounds. Compile with -O3 and the instructions to measure.

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "machine.h"

namespace {

constexpr size_t kBytes = size_t(192) << 20;   // of the region, at least; several times the largest cache
constexpr size_t kPart = size_t(8) << 20;      // that a thread reads in a pass
constexpr size_t kCached = size_t(128) << 10;  // that a thread reads repeatedly, from the L2 cache
constexpr size_t kOperands = size_t(8) << 10;  // in the L1 cache
constexpr size_t kLine = 64, kAhead = 2048;    // bytes of a cache line and of the prefetch distance, as in the kernels
// Bytes of a page. The hardware's prefetchers restart in each, so its first lines are prefetched from farther away. On
// Zen 3 that is the fastest way to read one stream.
constexpr size_t kPage = 4096;

volatile float sink;

// Independent sums hide the latency of a multiply-add.
constexpr int kSums = 8;

// Reads kPart bytes, the first `wrap` of p repeatedly, and multiplies each line Count times.
template <int Count>
void Pass(const uint8_t* p, size_t wrap, const uint8_t* operands) {
  Floats sums[kSums] = {};
  for (size_t at = 0, x = 0; at < kPart; at += kLine, x = (x + Count * kWidth) & (kOperands - 1)) {
    const uint8_t* line = p + (at & (wrap - 1));
    __builtin_prefetch(line + kAhead);
    if (uintptr_t(line) % kPage < kPage / 4) {
      __builtin_prefetch(line + kPage);
    }
    Floats w = *reinterpret_cast<const Floats*>(line);
    for (size_t i = kWidth; i < kLine; i += kWidth) {
      w += *reinterpret_cast<const Floats*>(line + i);
    }
    if constexpr (Count == 0) {
      sums[0] += w;
    }
#pragma GCC unroll 64
    for (int i = 0; i < Count; i++) {
      sums[i % kSums] += w * *reinterpret_cast<const Floats*>(operands + x + i * kWidth);
    }
  }
  for (const Floats& s : sums) {
    sink = s[0];
  }
}

uint8_t* Filled(size_t bytes) {
  auto p = static_cast<uint8_t*>(LargePages(bytes));
  if (!p) {
    std::fprintf(stderr, "overlap: no memory\n");
    std::exit(1);
  }
  std::memset(p, 0x38, bytes);  // numbers of ordinary size
  return p;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

class Machine {
 public:
  explicit Machine(int threads)
      : gate_(threads), share_(std::max(kBytes / size_t(threads) / kPart, size_t(2)) * kPart),
        region_(Filled(size_t(threads) * share_ + kPage)),
        // The operands of a line may reach past kOperands.
        operands_(Filled(size_t(threads) * 2 * kOperands)) {
    for (int t = 1; t < threads; t++) {
      team_.emplace_back([this, t] {
        for (;;) {
          gate_.arrive_and_wait();
          if (!job_) {
            return;
          }
          job_(t);
          gate_.arrive_and_wait();
        }
      });
    }
  }

  ~Machine() {
    job_ = nullptr;
    gate_.arrive_and_wait();
    for (auto& t : team_) {
      t.join();
    }
  }

  template <int Count>
  void Measure(int rounds) {
    std::vector<double> balance, over;
    for (int i = 0; i < rounds; i++) {
      const double read = Time<0>(kPart), both = Time<Count>(kPart), cached = Time<Count>(kCached);
      balance.push_back(cached / read);
      over.push_back(both / std::max(cached, read));
    }
    std::printf("%d %.3f %.3f\n", Count, Median(balance), Median(over));
    std::fflush(stdout);
  }

 private:
  // Returns the seconds of a pass of all threads.
  template <int Count>
  double Time(size_t wrap) {
    job_ = [&](int t) {
      Pass<Count>(region_ + size_t(t) * share_ + next_, wrap, operands_ + size_t(t) * 2 * kOperands);
    };
    const double begun = Now();
    gate_.arrive_and_wait();
    job_(0);
    gate_.arrive_and_wait();
    const double took = Now() - begun;
    next_ = (next_ + kPart) % share_;
    return took;
  }

  std::barrier<> gate_;
  size_t share_;  // bytes of the region that a thread reads
  uint8_t *region_, *operands_;
  size_t next_ = 0;  // where a thread's next pass begins in its share
  std::function<void(int)> job_;
  std::vector<std::thread> team_;
};

template <int... Counts>
void MeasureAll(Machine& machine, int rounds, std::integer_sequence<int, Counts...>) {
  (machine.Measure<Counts>(rounds), ...);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc == 3 ? std::atoi(argv[1]) : 0, rounds = argc == 3 ? std::atoi(argv[2]) : 0;
  if (threads < 1 || rounds < 1) {
    std::fprintf(stderr, "usage: overlap THREADS ROUNDS\n");
    return 2;
  }
  Machine machine(threads);
  MeasureAll(machine, rounds, std::integer_sequence<int, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48>());
}
