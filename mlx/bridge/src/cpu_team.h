// The threads that the CPU kernels share.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace ingot::cpu {

// A persistent team: the thread that calls run, and helpers that spin for a moment and then sleep.
//
// Work is taken in chunks from a shared counter, so a slow thread takes fewer. A helper takes part only once it runs:
// one that the system has not scheduled is not waited for. A helper that was stopped in the middle of a chunk has to
// be; after such a stall the team goes on with one fewer for a while.
class Team {
 public:
  using Body = void (*)(void* context, int64_t begin, int64_t end);

  // The team of the process, never destroyed: threads outlive static destructors.
  static Team& instance();

  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Calls body for all of [0, n), in pieces of at most grain, and returns when all are done. Only one thread at a time
  // has the helpers; another, and a body that calls run itself, does its work alone. The pieces do not depend on the
  // number of threads. What a piece throws, run throws, and begins no more pieces.
  void run(int64_t n, int64_t grain, Body body, void* context);

  // Returns once done() is true: for a body that needs what an earlier piece of its run makes. After a wait that only a
  // thread taken off its processor explains, the team goes on with one fewer, as after one at the end of a run.
  template <class Done>
  void wait(Done&& done) {
    for (int spins = 0; !done(); spins++) {
      if (spins > 1000) {  // far more than pieces differ by
        return wait_long([](void* d) { return (*static_cast<std::remove_reference_t<Done>*>(d))(); }, std::addressof(done));
      }
    }
  }

  // To fewer where the system gives no more. Must not be called by a body.
  void resize(int threads);
  int size() const;

 private:
  void wait_long(bool (*done)(void*), void* context);

  struct State;
  std::unique_ptr<State> state_;
};

// Calls f(begin, end) for pieces of [0, n).
template <class F>
void parallel(int64_t n, int64_t grain, F&& f) {
  auto body = [](void* context, int64_t begin, int64_t end) { (*static_cast<std::remove_reference_t<F>*>(context))(begin, end); };
  Team::instance().run(n, grain, body, const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

}  // namespace ingot::cpu
