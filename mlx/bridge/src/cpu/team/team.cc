#include "cpu/team/team.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace ingot::cpu {

namespace {

using Clock = std::chrono::steady_clock;

// How long an idle helper spins before it sleeps: longer than the host takes between the last kernel of a token and the
// first of the next. A sleeping helper is often woken on the processor of the thread that wakes it, and shares it until
// the system migrates one of them.
constexpr auto kSpin = std::chrono::milliseconds(3);
// A thread that is waited for this much longer than pieces take has been descheduled.
constexpr auto kStall = std::chrono::microseconds(800);
// How long the team works with one helper fewer after such a stall. The time doubles with repeated stalls: the first
// stall may be a short interruption, later ones mean that another program occupies the processor.
constexpr Clock::duration kFirstPenalty = std::chrono::milliseconds(1), kLastPenalty = std::chrono::milliseconds(64);

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

thread_local bool inside_run = false;

}  // namespace

// gate has three fields. Bits 0 to 14 count the helpers inside a run. Bit 15 is set while the run is open: a helper
// enters by incrementing the count, and leaves by decrementing it. The bits above number the runs.
struct Team::State {
  static constexpr uint64_t kOpen = 1 << 15, kInside = kOpen - 1, kRun = 1 << 16;

  alignas(64) std::atomic<uint64_t> gate{0};
  alignas(64) std::atomic<int64_t> next{0};
  int64_t n = 0, grain = 1;
  Body body = nullptr;
  void* context = nullptr;
  std::atomic<int> limit{0};  // helpers with a lower index may enter
  Clock::time_point started;
  std::atomic<bool> failed{false};
  std::atomic<bool> late{false};  // a piece waited too long for another piece
  std::exception_ptr error;       // the first exception; written by the thread that set failed

  alignas(64) std::atomic<int> sleepers{0};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> calls{0};  // how many calls of each there were
  std::atomic<int> pending{0};     // helpers that have not run the function of the last one
  void (*call)() noexcept = nullptr;
  std::mutex sleep;
  std::condition_variable wake;

  std::mutex owner;
  std::mutex members;  // held while helpers start, end, or run the function of each
  std::vector<std::thread> helpers;
  std::atomic<int> threads{1};
  int allowed = 0;  // number of helpers that may enter the next run; lower after a stall
  Clock::duration penalty = kFirstPenalty;
  Clock::time_point restore;

  // Runs pieces until none is left and returns how many this thread ran. The owner of the run also readmits helpers.
  int64_t run_pieces(bool owns) {
    for (int64_t pieces = 0;; pieces++) {
      if (owns && limit.load(std::memory_order_relaxed) < int(helpers.size())) {
        readmit_helper();
      }
      int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= n) {
        return pieces;
      }
      try {
        body(context, begin, std::min(n, begin + grain));
      } catch (...) {
        // A piece may throw, such as bad_alloc for scratch. The exception must not end a helper, or the run while
        // helpers are inside.
        if (!failed.exchange(true)) {
          error = std::current_exception();
        }
        next.store(n, std::memory_order_relaxed);
      }
    }
  }

  // Reports whether a helper may join the run that gate value g describes. seen is the number of the run that it joined
  // last.
  bool can_join(uint64_t g, uint64_t seen, int index) const {
    return (g & kOpen) && g / kRun != seen && index < limit.load();
  }

  // The main function of a helper: joins runs, and runs the functions of each, until stop is set. called is the number
  // of these before its start.
  void helper_loop(int index, uint64_t called) {
    inside_run = true;
    uint64_t seen = 0;
    auto idle = Clock::now();
    for (uint32_t spins = 0;; spins++) {
      if (uint64_t c = calls.load(std::memory_order_acquire); c != called) {
        called = c;
        call();
        pending.fetch_sub(1, std::memory_order_release);
      }
      uint64_t g = gate.load(std::memory_order_acquire);
      if (can_join(g, seen, index)) {
        if (gate.compare_exchange_weak(g, g + 1, std::memory_order_acq_rel)) {
          seen = g / kRun;
          run_pieces(false);
          gate.fetch_sub(1, std::memory_order_release);
          idle = Clock::now();
        }
        continue;
      }
      if (stop.load(std::memory_order_relaxed)) {
        return;
      }
      pause();
      if (spins % 64 == 0 && Clock::now() - idle > kSpin) {
        sleep_until_needed(seen, called, index);
        idle = Clock::now();
      }
    }
  }

  // Sleeps until there is a run that this helper has not joined, or a function that it has not run.
  void sleep_until_needed(uint64_t seen, uint64_t called, int index) {
    std::unique_lock lock(sleep);
    sleepers.fetch_add(1);
    wake.wait(lock, [&] { return stop.load() || calls.load() != called || can_join(gate.load(), seen, index); });
    sleepers.fetch_sub(1);
  }

  void wake_all() {
    { std::lock_guard lock(sleep); }  // a helper that is about to sleep has now seen the change or waits already
    wake.notify_all();
  }

  void start(int count) {
    stop = false;
    try {
      for (int i = 0; i + 1 < count; i++) {
        helpers.emplace_back([this, i, called = calls.load()] { helper_loop(i, called); });
      }
    } catch (const std::system_error&) {  // out of threads: continue with fewer
    }
    allowed = int(helpers.size());
    threads = allowed + 1;
  }

  void end() {
    stop = true;
    wake_all();
    for (auto& h : helpers) {
      h.join();
    }
    helpers.clear();
  }

  // Closes the run and waits for the helpers inside; piece is the typical duration of a piece.
  void close(Clock::duration piece) {
    uint64_t g = gate.fetch_and(~kOpen, std::memory_order_acq_rel);
    if ((g & kInside) == 0) {
      return;
    }
    auto started = Clock::now();
    bool stalled = false;
    for (uint32_t spins = 1; (gate.load(std::memory_order_acquire) & kInside) != 0; spins++) {
      pause();
      if (spins % 256 == 0 && Clock::now() - started > kStall + 2 * piece) {
        stalled = true;
        std::this_thread::yield();  // the helper may need this processor
      }
    }
    if (stalled) {
      exclude_helper();
    }
  }

  // Excludes one helper from runs for a while.
  void exclude_helper() {
    auto now = Clock::now();
    penalty = now - restore < 4 * penalty ? std::min(2 * penalty, kLastPenalty) : kFirstPenalty;
    allowed = std::max(0, allowed - 1);
    restore = now + penalty;
  }

  // Readmits one helper if the penalty of the last stall is over.
  void readmit_helper() {
    const auto now = Clock::now();
    if (now < restore) {
      return;
    }
    allowed++;
    restore = now;
    limit.store(allowed);
    if (sleepers.load() > 0) {
      wake_all();
    }
  }
};

Team::Team(int threads) : state_(new State) { state_->start(threads); }

Team::~Team() { state_->end(); }

Team& Team::instance() {
  static Team* team = new Team(1);
  return *team;
}

int Team::size() const { return state_->threads; }

void Team::each(void (*f)() noexcept) {
  State& s = *state_;
  std::lock_guard lock(s.members);
  f();
  s.call = f;
  s.pending.store(int(s.helpers.size()), std::memory_order_relaxed);
  s.calls.fetch_add(1);
  s.wake_all();
  while (s.pending.load(std::memory_order_acquire) > 0) {
    std::this_thread::yield();
  }
}

void Team::resize(int threads) {
  std::scoped_lock lock(state_->members, state_->owner);
  state_->end();
  state_->start(threads);
}

void Team::run(int64_t n, int64_t grain, Body body, void* context) {
  grain = std::max<int64_t>(1, grain);
  State& s = *state_;
  std::unique_lock lock(s.owner, std::defer_lock);
  if (n <= grain || inside_run || !lock.try_lock()) {
    for (int64_t begin = 0; begin < n; begin += grain) {
      body(context, begin, std::min(n, begin + grain));
    }
    return;
  }
  s.n = n;
  s.grain = grain;
  s.body = body;
  s.context = context;
  s.limit.store(s.allowed);
  s.failed.store(false, std::memory_order_relaxed);
  s.next.store(0, std::memory_order_relaxed);
  s.started = Clock::now();
  if (!s.helpers.empty()) {
    uint64_t g = s.gate.load(std::memory_order_relaxed);
    s.gate.store(((g / State::kRun + 1) * State::kRun) | State::kOpen);
    if (s.allowed > 0 && s.sleepers.load() > 0) {
      s.wake_all();
    }
  }
  inside_run = true;
  int64_t pieces = s.run_pieces(true);
  auto piece = (Clock::now() - s.started) / std::max<int64_t>(1, pieces);
  inside_run = false;
  s.close(piece);
  if (s.late.load(std::memory_order_relaxed)) {
    s.late.store(false, std::memory_order_relaxed);
    s.exclude_helper();
  }
  if (s.failed.load(std::memory_order_relaxed)) {
    std::rethrow_exception(std::exchange(s.error, nullptr));
  }
}

void Team::wait_long(bool (*done)(void*), void* context) {
  State& s = *state_;
  auto started = Clock::now();
  auto piece = (started - s.started) * s.threads.load() /
               std::max<int64_t>(1, std::min(s.n, s.next.load(std::memory_order_relaxed)) / s.grain);
  // Yield: the thread that it waits for may need this processor.
  for (bool late = false; !done(context); std::this_thread::yield()) {
    if (!late && Clock::now() - started > kStall + 2 * piece) {
      s.late.store(late = true, std::memory_order_relaxed);
    }
  }
}

}  // namespace ingot::cpu
