// The thread team of the CPU kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace ingot::cpu {

// Team is a persistent thread pool for data-parallel loops: the thread that calls run, and helpers that spin for a
// moment after a run and then sleep.
//
// Threads take pieces of a loop from a shared counter, so a slow thread takes fewer. A run does not wait for helpers
// that the system has not scheduled yet; they join once they are running. A helper that is descheduled in the middle of
// a piece must be waited for; after such a stall the team excludes one helper for a while.
class Team {
 public:
  using Body = void (*)(void* context, int64_t begin, int64_t end);

  // Returns the team of the process. It is never destroyed, because threads outlive static destructors.
  static Team& instance();

  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Calls body(context, begin, end) for pieces of [0, n) of at most grain elements, and returns when all are complete.
  // Pieces do not depend on the number of threads. Safe for concurrent use, but only one caller at a time has the
  // helpers: a concurrent or nested call runs its pieces on the calling thread. If a piece throws, no further pieces
  // start and run rethrows the first exception.
  void run(int64_t n, int64_t grain, Body body, void* context);

  // Waits until done() returns true: for a piece that needs the result of an earlier piece of the same run. If the wait
  // is so long that a thread must have been descheduled, the team excludes a helper for a while, as after a stall at
  // the end of a run.
  template <class Done>
  void wait(Done&& done) {
    for (int spins = 0; !done(); spins++) {
      if (spins > 1000) {  // pieces rarely differ by this much
        return wait_long([](void* d) { return (*static_cast<std::remove_reference_t<Done>*>(d))(); },
                         std::addressof(done));
      }
    }
  }

  // Calls f once on the calling thread and once on each helper, and returns when all calls have returned. A helper that
  // is inside a run calls f after it. Must not be called from a body.
  void each(void (*f)() noexcept);

  // Changes the number of threads, to fewer if the system has no more. Must not be called from a body.
  void resize(int threads);
  int size() const;

 private:
  void wait_long(bool (*done)(void*), void* context);

  struct State;
  std::unique_ptr<State> state_;
};

// Calls f(begin, end) for pieces of [0, n) of at most grain elements, on the team of the process.
template <class F>
void parallel(int64_t n, int64_t grain, F&& f) {
  auto body = [](void* context, int64_t begin, int64_t end) {
    (*static_cast<std::remove_reference_t<F>*>(context))(begin, end);
  };
  Team::instance().run(n, grain, body, const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

}  // namespace ingot::cpu
